"""What a request may use, what it used, and what that cost: settings, windows, budget, bill, usage, prices."""

from brim.budget.bill import KINDS, Bill, Line, largest, make_bill, render_bill
from brim.budget.budget import Budget, budget_for, reserve
from brim.budget.caching import CacheRules, cache_rules
from brim.budget.duplicates import Duplicate, duplicates
from brim.budget.prices import Prices, Tier, make_prices, prices_of, relative_prices
from brim.budget.settings import Mode, Settings, load_settings
from brim.budget.usage import Usage, cost_of, parse_usage
from brim.budget.windows import ASSUMED_WINDOW, Windows, learn_window, window_of

__all__ = [
    "ASSUMED_WINDOW",
    "KINDS",
    "Bill",
    "Budget",
    "CacheRules",
    "Duplicate",
    "Line",
    "Mode",
    "Prices",
    "Settings",
    "Tier",
    "Usage",
    "Windows",
    "budget_for",
    "cache_rules",
    "cost_of",
    "duplicates",
    "largest",
    "learn_window",
    "load_settings",
    "make_bill",
    "make_prices",
    "parse_usage",
    "prices_of",
    "relative_prices",
    "render_bill",
    "reserve",
    "window_of",
]
