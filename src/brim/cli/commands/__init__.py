"""The commands of `brim`, a module for each group. Importing them loads nothing but typer."""
