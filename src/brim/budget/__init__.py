"""What a request may use, what it used, and what that cost: settings, windows, budget, bill, usage, prices."""

from brim.budget.bill import KINDS, Bill, Line, largest, make_bill, render_bill
from brim.budget.budget import Budget, budget_for, reserve
from brim.budget.settings import Mode, Settings, load_settings
from brim.budget.usage import Usage, cost_of, parse_usage

__all__ = [
    "KINDS",
    "Bill",
    "Budget",
    "Line",
    "Mode",
    "Settings",
    "Usage",
    "budget_for",
    "cost_of",
    "largest",
    "load_settings",
    "make_bill",
    "parse_usage",
    "render_bill",
    "reserve",
]
