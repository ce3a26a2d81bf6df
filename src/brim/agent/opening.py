"""From what was configured to an agent that can be asked: model, provider, counter, store, session, tools, permissions."""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from brim.agent.agent import Agent
from brim.agent.config import Config
from brim.agent.debuglog import DebugLog
from brim.agent.effort import thinking_fields
from brim.agent.events import Emit, Notice
from brim.agent.fallback import Fallbacks, Open
from brim.agent.permit import Ask, Permits, Remember, unknown_tools
from brim.agent.prompts import SMALL_WINDOW, Section, build_sections, join_sections, read_notes
from brim.agent.servers import find_servers, make_join, render_tools
from brim.agent.session import AgentSession, Offer, Partner, prices_for
from brim.agent.structured import Form, load_form
from brim.agent.summarizer import ModelSummarizer
from brim.agent.surroundings import Surroundings, index_folder
from brim.agent.trial import assigned_mode
from brim.budget import Settings, window_of
from brim.errors import BrimError, ConfigError, SessionNotFound, UsageError
from brim.permissions.redact import open_redactor
from brim.permissions.rulebook import RuleBook, remembered_path
from brim.permissions.rules import TOOLS
from brim.permissions.sandbox import Sandbox, open_sandbox
from brim.providers import ModelRef, Provider, RetryPolicy, default_model, open_provider, resolve_model
from brim.providers.discover import with_served_window
from brim.providers.presets import LOCAL
from brim.store import CAP
from brim.tools import Tool, ToolContext, default_tools
from brim.tools.mcp import McpServers

if TYPE_CHECKING:
    from brim.store import Session, Store
    from brim.tokens import Counter


_IMAGES_IN_RESULTS = frozenset({"anthropic.messages", "openai.responses"})
"""APIs whose tool results can hold images."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Which session: `id` (or a beginning of one), else the latest of the project where `latest`, else a new one (under
    `name`, if given). `fork` goes on in a copy. `keep` False keeps nothing once the process ends."""

    id: str | None = None
    latest: bool = False
    name: str | None = None
    fork: bool = False
    keep: bool = True


class Opened(msgspec.Struct):
    """An agent and what was opened for it. `close` in the end."""

    agent: Agent
    store: Store
    provider: Provider
    debug: DebugLog
    sections: list[Section]
    servers: McpServers
    summary_provider: Provider | None = None
    surroundings: Surroundings | None = None

    async def close_providers(self) -> None:
        """Closes what is this agent's alone; store and servers may serve another."""
        if self.surroundings is not None:
            self.surroundings.close()
        await self.agent.close()
        await self.provider.close()
        if self.summary_provider is not None:
            await self.summary_provider.close()

    async def close(self) -> None:
        await self.servers.close()
        await self.close_providers()
        self.debug.close()
        self.store.close()


async def open_agent(
    config: Config,
    workspace: Path,
    env: Mapping[str, str],
    emit: Emit,
    *,
    choice: Choice | None = None,
    ask: Ask | None = None,
    debug: Path | None = None,
    ladder: bool = True,
    policy: RetryPolicy | None = None,
    tools: Sequence[Tool] | None = None,
    store: Store | None = None,
    servers: McpServers | None = None,
) -> Opened:
    """Everything one needs to ask. Raises what cannot be opened, as BrimError; what was opened by then is closed.

    `store`: one that is open already and stays open; None opens the configured one. `servers`: the same for MCP servers.
    """
    from brim.store import TEMPORARY, open_store

    choice = choice or Choice()
    general = config.general()
    # read once, since it may be a pipe; what is wrong with it is told before anything is opened
    form = load_form(path) if (path := config.schema_path(workspace)) is not None else None
    rules = config.permissions()
    wrap_command = make_wrapper(workspace, rules.box(), emit)
    redact = open_redactor() if general.redact else None
    book = RuleBook(remembered_path(env))
    for warning in config.warnings:
        emit(Notice(warning, "config"))
    own_store, own_servers = store is None, servers is None
    if store is None:
        store = open_store(TEMPORARY if not choice.keep else general.store)
    provider: Provider | None = None
    writer: Provider | None = None
    if servers is None:
        servers = find_servers(config, workspace, env, emit)
    try:
        servers.start()
        if store.damage and not store.unwritable:  # that is an error in a moment, and told then
            emit(Notice(store.damage, "store"))
        store.on_damage = lambda damage: emit(Notice(damage, "store"))
        if store.migrated:
            said = f"{store.where} was migrated to this brim's schema; an older brim cannot open it now"
            emit(Notice(said + (f", but {store.former}" if store.former is not None else ""), "store"))
        session = find_session(store, choice, workspace)
        model = await with_served_window(await choose_model(config, env, session, emit))
        provider = open_provider(model, env=env)
        if note := model.note or getattr(provider, "note", None):
            emit(Notice(note if model.note else f"{model.full_name}: {note}", "model"))
        counter, window = _of_its_own(provider)
        log = DebugLog(debug, (model.key or "",))
        mode = session.mode if session is not None and session.mode and not _asked(config, "mode") else general.mode
        if session is None:
            session = make_session(store, choice, workspace, mode, model)
            if not _asked(config, "mode"):
                mode = assigned_mode(session.id, config.experiment()) or mode
        kit = list(tools) if tools is not None else default_tools()
        own_prices = config.prices()
        settings = _at_own_prices(config.settings(), model, own_prices)
        if general.summary_model is not None:
            of = (
                model
                if general.summary_model == "same"
                else resolve_model(general.summary_model, env, config.providers())
            )
            writer = open_provider(of, env=env) if of is not model else None
            settings = msgspec.structs.replace(
                settings,
                summarizer=ModelSummarizer(writer or provider, of, store, session.id, emit, own_prices),
                summarizer_window=settings.summarizer_window or (window_of(of.model, of.window)[0] if writer else None),
            )
        sections, offer = make_offer(config, model, kit, workspace, window=window or model.window, form=form)
        for said in offer.notes:
            emit(Notice(said, "model"))
        if general.max_cost is not None and model.provider != LOCAL and prices_for(model, own_prices) is None:
            emit(Notice(f"no price is known for {model.full_name}: max_cost cannot be held to", "cost"))
        opened = AgentSession(
            store, session, model=model, offer=offer, settings=settings, mode=mode, counter=counter,
            window=window, ladder=ladder, prices=own_prices,
        )  # fmt: skip
        if session.mode != mode or session.model != model.full_name:
            store.change_session(session.id, mode=mode, model=model.full_name)
        context = ToolContext(
            workspace=workspace, blobs=store.blobs(session.id, cap=CAP if general.originals else 0),
            count=opened.counter.count_text, caps=config.caps(env, opened.window[0]), env=dict(env), originals=opened.original,
            wrap_command=wrap_command, more_tools=servers.find, sees_images=model.api in _IMAGES_IN_RESULTS,
        )  # fmt: skip
        permits = Permits(
            workspace, mode=rules.mode, allow=[*book.texts("allow"), *rules.allow],
            deny=[*book.texts("deny"), *rules.deny], ask_rules=[*book.texts("ask"), *rules.ask], ask=ask,
            remember=make_memory(book, emit),
        )  # fmt: skip
        known = list(dict.fromkeys([*TOOLS, *(each.name for each in kit)]))
        for said in unknown_tools([*rules.allow, *rules.deny, *rules.ask], known):
            emit(Notice(said, "permissions"))
        for name in general.fallback_models:
            try:
                resolve_model(name, env, config.providers())
            except BrimError as failure:
                hint = f" ({failure.hint})" if failure.hint else ""
                emit(Notice(f"the fallback {name} cannot be used: {failure.message}{hint}", "fallback"))
        context.left_out = permits.left_out
        agent = Agent(
            opened, provider, emit, tools=kit, context=context, permits=permits, max_steps=general.max_steps,
            max_calls=general.max_calls,
            fallbacks=Fallbacks(general.fallback_models, make_opener(config, workspace, env, form)), max_cost=general.max_cost,
            policy=policy or RetryPolicy(attempts=max(1, general.attempts)), debug=log, redact=redact,
        )  # fmt: skip
        surroundings = find_surroundings(config, workspace, env, agent, kit, keep=choice.keep)
        agent.get_ready = make_ready(agent, kit, servers, surroundings)
        return Opened(agent, store, provider, log, sections, servers, writer, surroundings)
    except BaseException:
        for opened_one in (provider, writer):
            if opened_one is not None:
                await opened_one.close()
        if own_servers:
            await servers.close()
        if own_store:
            store.close()
        raise


def make_opener(config: Config, workspace: Path, env: Mapping[str, str], form: Form | None = None) -> Open:
    """Opens a fallback model with the same settings, for answers of the same form."""

    async def open_partner(name: str, tools: Sequence[Tool]) -> tuple[Partner, Provider]:
        model = resolve_model(name, env, config.providers())
        if model.needs_key and not model.key:
            raise ConfigError(f"no key is set for {model.provider}", hint=f"set {' or '.join(model.key_env)}")
        model = await with_served_window(model)
        provider = open_provider(model, env=env)
        try:
            counter, window = _of_its_own(provider)
            _, offer = make_offer(config, model, tools, workspace, window=window or model.window, form=form)
        except BaseException:
            await provider.close()
            raise
        return Partner(model=model, offer=offer, counter=counter, window=window or model.window), provider

    return open_partner


def find_surroundings(
    config: Config, workspace: Path, env: Mapping[str, str], agent: Agent, kit: Sequence[Tool], *, keep: bool
) -> Surroundings | None:
    """What puts parts of the workspace beside a question; None where that is off or the model may not read. A session that
    keeps nothing keeps no index. Raises ConfigError."""
    retrieval = config.retrieval()
    read = next((tool for tool in kit if tool.name == "read"), None)
    if read is None or agent.permits is None or retrieval.snippets == retrieval.tree == "off":
        return None
    return Surroundings(
        retrieval, workspace, index_folder(env) if keep else None, agent.session, agent.permits, read, agent.emit,
        agent.redact,
    )  # fmt: skip


def make_ready(
    agent: Agent, kit: Sequence[Tool], servers: McpServers, surroundings: Surroundings | None = None
) -> Callable[[], Awaitable[None]]:
    """Puts the tools of MCP servers beside brim's own, once, before the first request, and beside each question what of the
    workspace it is about."""
    join_tools = make_join(agent, kit, servers)

    async def get_ready() -> None:
        if surroundings is not None:
            await surroundings.put_beside_question()
        await join_tools()

    return get_ready


def make_wrapper(workspace: Path, box: Sandbox, emit: Emit) -> Callable[[Sequence[str], Path], Sequence[str]] | None:
    """What puts a command into the sandbox; None where none is wanted. Raises ConfigError where one is required and cannot
    be had. `auto` is tried at the first command, and that there is none is told once, then."""
    if box.mode != "auto":
        return open_sandbox(workspace, box)[0]
    found: list[Callable[[Sequence[str], Path], list[str]] | None] = []

    def wrap_command(argv: Sequence[str], cwd: Path) -> Sequence[str]:
        if not found:
            wrap, notice = open_sandbox(workspace, box)
            found.append(wrap)
            if notice is not None:
                emit(Notice(notice, "sandbox"))
        return argv if found[0] is None else found[0](argv, cwd)

    return wrap_command


def make_memory(book: RuleBook, emit: Emit) -> Remember:
    """Keeps what was answered with "always". Where that cannot be written, it holds for the session, and that is told."""

    def remember(rule: str) -> None:
        try:
            book.remember(rule, lasting=True)
        except ConfigError as error:
            emit(Notice(f"{rule} holds for this session only: {error.message}", "permissions"))

    return remember


def _asked(config: Config, key: str) -> bool:
    """Whether a value was asked for now (a flag, a profile), rather than configured once: then it wins over the session's."""
    return config.origin(key).split()[0] in ("flag", "profile")


async def choose_model(
    config: Config, env: Mapping[str, str], session: Session | None = None, emit: Emit | None = None
) -> ModelRef:
    """The model that is named, else the session's own, else the configured or default one.

    Raises UsageError, ConfigError, ModelMissing.
    """
    own = config.providers()
    named: str | None = config.get("model")
    if session is not None and session.model and not _asked(config, "model"):
        try:
            return resolve_model(session.model, env, own)
        except (UsageError, ConfigError) as error:
            if emit is not None:
                emit(Notice(f"the session's model {session.model} cannot be used now: {error.message}", "model"))
    return resolve_model(named, env, own) if named else await default_model(env, own)


def find_session(store: Store, choice: Choice, workspace: Path) -> Session | None:
    """The session that was chosen; None for one that is still to be made. Raises SessionNotFound, UsageError."""
    project = str(workspace)
    if choice.id is not None:
        found = store.find_session(choice.id)
    elif choice.latest:
        try:
            found = store.find_session(None, project)
        except SessionNotFound as error:
            raise SessionNotFound(f"no session to continue in {project}", hint='start one: ai "…"') from error
    elif choice.fork and choice.name is None:
        raise UsageError("--fork needs a session to copy", hint="add -c (the latest) or -r ID")
    elif choice.name is not None:
        try:
            found = store.get_session(choice.name)
        except SessionNotFound:
            return None
    else:
        return None
    return store.fork(found.id) if choice.fork else found


def make_session(store: Store, choice: Choice, workspace: Path, mode: str, model: ModelRef) -> Session:
    """The new session; under a name, the one that another process made after we looked. Raises UsageError."""
    try:
        return store.new_session(str(workspace), mode, model.full_name, id=choice.name)
    except UsageError:
        if choice.name is None:
            raise
        try:
            return store.get_session(choice.name)
        except SessionNotFound:
            pass
        raise


def make_offer(
    config: Config,
    model: ModelRef,
    tools: Sequence[Tool],
    workspace: Path,
    *,
    window: int | None,
    form: Form | None = None,
) -> tuple[list[Section], Offer]:
    """The sections of the system prompt, and what goes into every body. `form`: what answers have to keep to."""
    general = config.general()
    asked = form.fields(model) if form is not None else {}
    notes: list[str] = []
    if form is not None and model.provider == LOCAL and tools:
        # its one grammar is either a call's or the schema's
        tools = ()
        notes.append(f"{model.full_name} is offered no tools where its answer keeps to a schema")
    small = window is not None and window < SMALL_WINDOW
    sections = build_sections(
        workspace,
        tools=[tool.name for tool in tools],
        recall=not small,
        own=general.system,
        notes=read_notes(workspace) if general.notes and not small else None,
        today=datetime.date.today(),
        small=small,
    )
    if form is not None and not ("json_schema" in str(asked) and model.provider != LOCAL):
        sections.append(Section("schema", form.told()))
    body: dict[str, Any] = {}
    if general.temperature is not None:
        body["temperature"] = general.temperature
    most = general.max_tokens
    if most is not None:
        body["max_output_tokens" if model.api == "openai.responses" else "max_tokens"] = most
    needs_maximum = most is None and model.api == "anthropic.messages"
    thought = thinking_fields(
        model, general.effort, general.thinking_budget, max_tokens=most, temperature=general.temperature is not None
    )
    body = {key: value for key, value in body.items() if key not in thought.dropped}
    body = merged(merged(body, thought.fields), asked)
    wires = render_tools(tools, model)
    offer = Offer(
        system=join_sections(sections), tools=wires, body=body, needs_maximum=needs_maximum, room=thought.room, form=form,
        notes=(*notes, *thought.notes),
    )  # fmt: skip
    return sections, offer


def merged(body: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """A body with further fields; objects that both have become one (`output_config` holds an effort and a format)."""
    made = dict(body)
    for key, value in more.items():
        held = made.get(key)
        made[key] = {**held, **value} if isinstance(held, Mapping) and isinstance(value, Mapping) else value
    return made


def _at_own_prices(settings: Settings, model: ModelRef, own: Mapping[str, Any]) -> Settings:
    """Edits are weighed at the user's own cache prices where there are some and nothing else is set."""
    found = prices_for(model, own)
    if found is None or found.source != "config" or found.input <= 0:
        return settings
    write, read = found.cache_write / found.input, found.cache_read / found.input
    return msgspec.structs.replace(
        settings,
        price_write=write if settings.price_write is None else settings.price_write,
        price_read=read if settings.price_read is None else settings.price_read,
    )


def _of_its_own(provider: Provider) -> tuple[Counter | None, int | None]:
    """Counter and window that a provider brings itself (the embedded model); None where it has none."""
    make = getattr(provider, "counter", None)
    return make() if callable(make) else None, getattr(provider, "window", None)
