"""The small Python project of the two-round experiment, and what is true of it.

A shop's command line of six modules, as one would find it: big enough that the second question needs four more files,
small enough that every answer can be checked against known facts.
"""

from __future__ import annotations

from pathlib import Path

import msgspec


class Question(msgspec.Struct, frozen=True):
    """A question and the facts a right answer names: (what, patterns of which one must occur)."""

    text: str
    facts: tuple[tuple[str, tuple[str, ...]], ...]


QUESTIONS = (
    Question(
        "Where is the entry point of this project, and what manages its dependencies?",
        (
            ("the entry point", (r"src/tinyshop/main\.py", r"tinyshop\.main:main", r"tinyshop/main\.py")),
            ("the file of dependencies", (r"pyproject\.toml",)),
            ("their tool", (r"\buv\b",)),
        ),
    ),
    Question(
        "What does main do?",
        (
            ("reads the configuration", (r"load_config", r"shop\.toml")),
            ("opens the stock", (r"open_stock", r"stock\.csv")),
            ("reads the orders", (r"read_orders", r"orders\.csv")),
            ("books them", (r"book_orders", r"\bbooks?\b")),
            ("prints the report", (r"print_report", r"\breport\b")),
            ("returns an exit code", (r"exit code", r"EXIT_\w+")),
        ),
    ),
)


def make_project(folder: Path) -> Path:
    """Writes the project into `folder`, which is made where it is missing; returns it."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


FILES: dict[str, str] = {
    "pyproject.toml": """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "tinyshop"
version = "0.3.0"
description = "Stock, orders and a daily report for a very small shop."
requires-python = ">=3.11"
dependencies = ["rich>=13", "python-dateutil>=2.9"]

[project.scripts]
tinyshop = "tinyshop.main:main"

[dependency-groups]
dev = ["pytest>=8", "ruff>=0.6"]

[tool.uv]
package = true

[tool.ruff]
line-length = 100
""",
    "README.md": """# tinyshop

Keeps the stock of a very small shop, books its orders and prints a report at the end of the day.

    uv sync                      # dependencies, from pyproject.toml and uv.lock
    uv run tinyshop shop.toml    # book the waiting orders, print the report
    uv run pytest

| file | what it is |
| --- | --- |
| shop.toml | name of the shop, folder of its data, currency |
| data/stock.csv | article, number in stock, price in cents |
| data/orders.csv | day, customer, article, number wanted |
""",
    "uv.lock": """version = 1
requires-python = ">=3.11"

[[package]]
name = "iniconfig"
version = "2.0.0"
source = { registry = "https://example.invalid/simple" }

[[package]]
name = "markdown-it-py"
version = "3.0.0"
source = { registry = "https://example.invalid/simple" }

[[package]]
name = "mdurl"
version = "0.1.2"
source = { registry = "https://example.invalid/simple" }

[[package]]
name = "packaging"
version = "24.1"
source = { registry = "https://example.invalid/simple" }

[[package]]
name = "pluggy"
version = "1.5.0"
source = { registry = "https://example.invalid/simple" }

[[package]]
name = "pygments"
version = "2.18.0"
source = { registry = "https://example.invalid/simple" }

[[package]]
name = "pytest"
version = "8.3.2"
source = { registry = "https://example.invalid/simple" }

[[package]]
name = "python-dateutil"
version = "2.9.0"
source = { registry = "https://example.invalid/simple" }

[[package]]
name = "rich"
version = "13.7.1"
source = { registry = "https://example.invalid/simple" }

[[package]]
name = "ruff"
version = "0.6.2"
source = { registry = "https://example.invalid/simple" }

[[package]]
name = "six"
version = "1.16.0"
source = { registry = "https://example.invalid/simple" }
""",
    "shop.toml": """name = "Corner shop"
data = "data"
currency = "EUR"
""",
    "src/tinyshop/__init__.py": '''"""Stock, orders and a daily report for a very small shop."""
''',
    "src/tinyshop/main.py": '''"""The command line: book the waiting orders of a shop, print the report of the day."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tinyshop.config import ConfigError, load_config
from tinyshop.orders import book_orders, read_orders
from tinyshop.report import print_report
from tinyshop.stock import open_stock, save_stock

EXIT_OK = 0
EXIT_REFUSED = 1
EXIT_CONFIG = 2


def make_parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = argparse.ArgumentParser(prog="tinyshop", description="Book orders and print the report of the day.")
    parser.add_argument("config", nargs="?", default="shop.toml", help="the shop's configuration")
    parser.add_argument("--day", default=None, help="only the orders of this day, YYYY-MM-DD")
    parser.add_argument("--dry-run", action="store_true", help="book nothing, only print")
    parser.add_argument("--quiet", action="store_true", help="print only what was refused")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    options = make_parser().parse_args(argv)
    try:
        config = load_config(Path(options.config))
    except ConfigError as error:
        print(f"tinyshop: {error}", file=sys.stderr)
        return EXIT_CONFIG
    stock = open_stock(config.data / "stock.csv")
    orders = read_orders(config.data / "orders.csv", day=options.day)
    booked, refused = book_orders(stock, orders)
    if not options.dry_run:
        save_stock(stock, config.data / "stock.csv")
    print_report(config, booked, refused, quiet=options.quiet)
    return EXIT_REFUSED if refused else EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
''',
    "src/tinyshop/config.py": '''"""The shop's configuration: a TOML file with three keys."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

KEYS = ("name", "data", "currency")
CURRENCIES = {"EUR": "€", "USD": "$", "GBP": "£", "CHF": "Fr."}


class ConfigError(Exception):
    """A configuration that cannot be used; the message says why."""


@dataclass(frozen=True)
class Config:
    """Name of the shop, folder of its data, currency."""

    name: str
    data: Path
    currency: str

    @property
    def sign(self) -> str:
        """The currency as it stands before a price."""
        return CURRENCIES[self.currency]


def load_config(path: Path) -> Config:
    """Reads shop.toml and checks that every key is there; raises ConfigError otherwise."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"there is no {path}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is no TOML: {error}") from error
    missing = [key for key in KEYS if key not in values]
    if missing:
        raise ConfigError(f"{path} lacks {', '.join(missing)}")
    unknown = sorted(set(values) - set(KEYS))
    if unknown:
        raise ConfigError(f"{path} has unknown keys: {', '.join(unknown)}")
    if values["currency"] not in CURRENCIES:
        raise ConfigError(f"currency is {values['currency']!r}, one of {', '.join(CURRENCIES)}")
    folder = path.parent / values["data"]
    if not folder.is_dir():
        raise ConfigError(f"{folder} is no folder")
    return Config(values["name"], folder, values["currency"])
''',
    "src/tinyshop/stock.py": '''"""What the shop has: articles with their number and price, kept in a CSV file."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Article:
    """One article: how many there are, and the price of one in cents."""

    name: str
    count: int
    price_cents: int


class Stock:
    """The articles by name."""

    def __init__(self, articles: list[Article]) -> None:
        self.articles = {article.name: article for article in articles}

    def take(self, name: str, count: int) -> bool:
        """Takes so many out of stock; False, and nothing taken, where there are fewer."""
        article = self.articles.get(name)
        if article is None or article.count < count:
            return False
        article.count -= count
        return True

    def price(self, name: str) -> int:
        """The price of one in cents."""
        return self.articles[name].price_cents

    def low(self, least: int = 3) -> list[Article]:
        """The articles of which fewer than `least` are left, the scarcest first."""
        found = [article for article in self.articles.values() if article.count < least]
        return sorted(found, key=lambda article: (article.count, article.name))


def open_stock(path: Path) -> Stock:
    """Loads the stock from stock.csv, an article a line."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return Stock([Article(row["article"], int(row["count"]), int(row["price_cents"])) for row in rows])


def save_stock(stock: Stock, path: Path) -> None:
    """Writes the stock back to stock.csv by way of a temporary file, so that a crash leaves the old one."""
    temporary = path.with_suffix(".tmp")
    with temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["article", "count", "price_cents"])
        for article in stock.articles.values():
            writer.writerow([article.name, article.count, article.price_cents])
    os.replace(temporary, path)
''',
    "src/tinyshop/orders.py": '''"""Orders: read from a CSV file, booked against the stock one after the other."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dateutil.parser import isoparse

from tinyshop.stock import Stock

MOST_AT_ONCE = 50


@dataclass(frozen=True)
class Order:
    """Who wants how many of what, and since which day."""

    day: str
    customer: str
    article: str
    count: int


@dataclass(frozen=True)
class Refusal:
    """An order that could not be booked, and why."""

    order: Order
    why: str


def read_orders(path: Path, day: str | None = None) -> list[Order]:
    """Reads the waiting orders from orders.csv, those of one day where one is named, the oldest first."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    orders = [Order(row["day"], row["customer"], row["article"], int(row["count"])) for row in rows]
    for order in orders:
        isoparse(order.day)
    wanted = [order for order in orders if day is None or order.day == day]
    return sorted(wanted, key=lambda order: order.day)


def book_orders(stock: Stock, orders: Iterable[Order]) -> tuple[list[Order], list[Refusal]]:
    """Books each order whose article is in stock and refuses the others with a reason."""
    booked: list[Order] = []
    refused: list[Refusal] = []
    for order in orders:
        if order.count <= 0:
            refused.append(Refusal(order, "nothing wanted"))
        elif order.count > MOST_AT_ONCE:
            refused.append(Refusal(order, f"more than {MOST_AT_ONCE} at once"))
        elif order.article not in stock.articles:
            refused.append(Refusal(order, "unknown article"))
        elif not stock.take(order.article, order.count):
            refused.append(Refusal(order, "not enough in stock"))
        else:
            booked.append(order)
    return booked, refused
''',
    "src/tinyshop/report.py": '''"""The report of the day, printed as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from tinyshop.config import Config
from tinyshop.orders import Order, Refusal


def print_report(config: Config, booked: Sequence[Order], refused: Sequence[Refusal], quiet: bool = False) -> None:
    """Prints a table of what was booked, by article, and the refused orders with their reasons."""
    console = Console()
    if not quiet:
        console.print(f"[bold]{config.name}[/bold]: {len(booked)} orders booked")
        console.print(booked_table(booked))
    for refusal in refused:
        order = refusal.order
        console.print(f"refused: {order.customer}, {order.count} x {order.article}: {refusal.why}")


def booked_table(booked: Sequence[Order]) -> Table:
    """How many of each article were booked, the most wanted first."""
    counts: Counter[str] = Counter()
    for order in booked:
        counts[order.article] += order.count
    table = Table("article", "booked")
    for article, count in counts.most_common():
        table.add_row(article, str(count))
    return table
''',
    "data/stock.csv": """article,count,price_cents
apples,40,35
bread,12,280
milk,20,145
""",
    "data/orders.csv": """day,customer,article,count
2026-03-02,Ada,bread,2
2026-03-02,Bo,milk,30
2026-03-03,Chen,apples,6
""",
    "tests/test_orders.py": '''"""Booking orders: what is in stock is booked, the rest refused with a reason."""

from tinyshop.orders import Order, book_orders
from tinyshop.stock import Article, Stock


def test_books_what_is_there() -> None:
    stock = Stock([Article("milk", 3, 145)])
    booked, refused = book_orders(stock, [Order("2026-03-02", "Ada", "milk", 2), Order("2026-03-02", "Bo", "milk", 2)])
    assert [order.customer for order in booked] == ["Ada"]
    assert [refusal.why for refusal in refused] == ["not enough in stock"]
    assert stock.articles["milk"].count == 1
''',
}
