"""Programs on the command line that can be read whole: `python -c "print(1)"`, `node -p process.version`, a query.

A short list of what only computes and prints is known here, and nothing else: no name, attribute or function that is not
on it. What cannot be read this way is no less harmless for it, but it is asked about.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from brim.permissions.words import names

_BUILTINS = names(
    "print len sorted sum min max str int float bool list dict set tuple range enumerate zip any all abs round repr ord"
    " chr hex bin oct reversed isinstance divmod pow open Exception ValueError KeyError TypeError OSError"
)
_MODULES: Mapping[str, frozenset[str]] = {
    "sys": names("version version_info platform maxsize byteorder executable prefix argv stdin exit getsizeof"),
    "os": names("getcwd cpu_count name sep"),
    "os.path": names("join exists basename dirname abspath isfile isdir getsize realpath splitext relpath"),
    "json": names("load loads dumps"),
    "math": names(
        "pi e tau inf sqrt floor ceil log log2 log10 exp sin cos tan pow factorial gcd isclose hypot prod comb"
    ),
    "time": names("time strftime gmtime localtime perf_counter sleep"),
    "datetime": names("datetime date timedelta timezone UTC"),
    "platform": names("python_version system machine release python_implementation"),
    "re": names("sub findall search match split escape fullmatch"),
    "random": names("random randint choice sample seed uniform"),
    "string": names("ascii_letters ascii_lowercase ascii_uppercase digits punctuation hexdigits"),
    "collections": names("Counter defaultdict OrderedDict"),
    "statistics": names("mean median stdev mode"),
    "hashlib": names("md5 sha1 sha256 sha512"),
    "base64": names("b64encode b64decode"),
    "uuid": names("uuid4 uuid1"),
    "textwrap": names("dedent fill indent"),
    "urllib.parse": names("quote unquote urlparse urlencode"),
    "importlib.metadata": names("version"),
}
"""What may be used of which module: values and functions, no modules."""
_METHODS = names(
    "read readline readlines strip lstrip rstrip split rsplit splitlines join format upper lower title replace"
    " startswith endswith get keys values items append isoformat strftime strptime count index find sort group groups"
    " hexdigest decode encode isdigit ljust rjust zfill copy pop add update major minor micro total_seconds year month"
    " day now today utcnow fromtimestamp fromisoformat most_common hex close extend"
)
_ABOUT = names("__version__ __file__ __name__ VERSION")
"""What may be asked of any module."""
_PLAIN = (
    ast.Module, ast.Expr, ast.Assign, ast.AugAssign, ast.For, ast.If, ast.Pass, ast.Lambda, ast.arguments, ast.arg,
    ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.comprehension, ast.Call, ast.keyword, ast.Constant,
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.JoinedStr, ast.FormattedValue, ast.Subscript,
    ast.Slice, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Starred, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
    ast.expr_context, ast.Import, ast.ImportFrom, ast.alias, ast.Attribute, ast.Name, ast.With, ast.withitem, ast.While,
    ast.Break, ast.Continue, ast.FunctionDef, ast.Return, ast.Try, ast.ExceptHandler, ast.Assert, ast.AnnAssign,
)  # fmt: skip


def python_is_plain(code: str) -> bool:
    """Whether a program of python's only computes, reads its input or files that it names, and prints. Importing a module
    counts as plain: who may run python may run that."""
    return python_files(code) is not None


def python_files(code: str) -> tuple[str, ...] | None:
    """The files that a plain program opens; None for one that is not plain."""
    if len(code) > 5000 or re.search(r"coding[:=]", code):  # in another encoding it is another program
        return None
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    files = [_opened(node) for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_name(node.func, "open")]
    if None in files or len(files) != sum(_is_name(node, "open") for node in ast.walk(tree)):
        return None
    return tuple(file for file in files if file is not None) if _is_plain(tree) else None


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _opened(node: ast.Call) -> str | None:
    """The file that a call of `open` reads; None where it may write, or is not known."""
    given = [*node.args, *(each.value for each in node.keywords if each.arg == "mode")]
    texts = [each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    if (
        len(texts) != len(given)
        or len(texts) not in (1, 2)
        or any(each.arg not in ("mode", "encoding", "errors", "newline") for each in node.keywords)
    ):
        return None
    return texts[0] if texts[1:] in ([], ["r"], ["rb"], ["rt"]) and node.args else None


def _is_plain(tree: ast.AST) -> bool:
    modules: dict[str, str] = {}
    known = set(_BUILTINS)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                modules[each.asname or each.name.partition(".")[0]] = (
                    each.name if each.asname else each.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            allowed = _MODULES.get(node.module or "", frozenset()) | _ABOUT
            if node.level or any(each.name not in allowed for each in node.names):
                return False
            known |= {each.asname or each.name for each in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            known.add(node.id)
        elif isinstance(node, ast.arg):
            known.add(node.arg)
        elif isinstance(node, ast.FunctionDef) or (isinstance(node, ast.ExceptHandler) and node.name is not None):
            known.add(node.name or "")
    if known & set(modules):
        return False
    return all(_is_plain_node(node, modules, known) for node in _beside_chains(tree, modules))


def _beside_chains(tree: ast.AST, modules: Mapping[str, str]) -> Iterator[ast.AST]:
    """Every node but those of `module.name` chains that are allowed as a whole."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Attribute) and _of_module(node, modules):
            continue
        yield node
        stack.extend(ast.iter_child_nodes(node))


def _of_module(node: ast.Attribute, modules: Mapping[str, str]) -> bool:
    path: list[str] = []
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        path.append(inner.attr)
        inner = inner.value
    if not isinstance(inner, ast.Name) or inner.id not in modules:
        return False
    *between, last = reversed(path)
    module = ".".join([modules[inner.id], *between])
    return last in _MODULES.get(module, ()) or (last in _ABOUT and not between)


def _is_plain_node(node: ast.AST, modules: Mapping[str, str], known: set[str]) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in _METHODS and isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Name):
        return node.id in known and not node.id.startswith("_")
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Name | ast.Tuple) for target in node.targets)
    return isinstance(node, _PLAIN) and not (isinstance(node, ast.FunctionDef) and node.decorator_list)


_NODE_WORD = r"(?:process\.(?:version|versions(?:\.\w+)?|platform|arch|cwd\(\)|argv)|\d+(?:\.\d+)?|true|false|null)"
_NODE_TEXT = r"(?:'[^'\\`\n]*'|\"[^\"\\`\n]*\")"
_NODE_FILE = r"require\((?:'\./package\.json'|\"\./package\.json\")\)(?:\.(?!constructor|__)[A-Za-z]\w*)*"
_NODE_VALUE = rf"(?:{_NODE_WORD}|{_NODE_TEXT}|{_NODE_FILE}|Math\.\w+\({_NODE_WORD}\))"
_NODE_SUM = rf"{_NODE_VALUE}(?:\s*[-+*/%,]\s*{_NODE_VALUE})*"
_NODE = re.compile(
    rf"\s*(?:console\.(?:log|error)\((?:{_NODE_SUM})?\)|{_NODE_SUM}|JSON\.stringify\({_NODE_SUM}\))\s*;?\s*"
)


def node_is_plain(code: str) -> bool:
    """Whether a program for node prints or is one value: a number, a text, a version, something out of package.json."""
    return len(code) < 2000 and _NODE.fullmatch(code) is not None


_SQL_WORK = re.compile(
    r"\b(program|copy|outfile|dumpfile|infile|load\w*|writefile|readfile|edit|fts3_tokenizer|lo_\w+|pg_\w*(read|ls|file)\w*|system"
    r"|delimiter|source|pager|tee|attach|into|do|execute|prepare|create|alter|drop|delete|update|insert|replace|truncate|grant"
    r"|revoke|set|call|pragma|vacuum)\b",
    re.IGNORECASE,
)
_SQL_READS = re.compile(r"\s*(select|show|explain|describe|desc|with|values)\b", re.IGNORECASE)


def sql_is_plain(query: str) -> bool:
    """Whether a query only reads tables. Commands of the client's own, but for lists of what there is, are none."""
    if re.fullmatch(r"\s*\.(tables|schema|databases|indexes|dbinfo)(\s+\w+)?\s*", query):
        return True
    parts = [part for part in query.split(";") if part.strip()]
    return bool(parts) and "\\" not in query and all(
        _SQL_READS.match(part) is not None and _SQL_WORK.search(part) is None for part in parts
    )  # fmt: skip
