"""A model that writes summaries, as the engine wants it: a plain call from chat messages to text.

The engine prepares a request in a thread while the event loop runs; the call hands the question to the loop and waits.
Each such request is recorded with its usage and cost, apart from the conversation's own.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from brim.agent.events import Emit, Notice
from brim.agent.session import prices_for
from brim.budget import cost_of
from brim.conversation import user
from brim.errors import ProviderError
from brim.formats import parse_message, render_messages
from brim.providers import Done, ModelRef, Provider

if TYPE_CHECKING:
    from brim.store import Store

LONGEST_S = 300.0
MOST_TOKENS = 8_192
"""Asked of an API that insists on a maximum; the engine says in the question how long a summary may be."""


class ModelSummarizer:
    """Callable from another thread than the loop's. Raises what the provider raises; the engine then writes its own."""

    def __init__(
        self, provider: Provider, model: ModelRef, store: Store, session: str, emit: Emit, prices: Mapping[str, Any]
    ) -> None:
        self.provider = provider
        self.model = model
        self._store = store
        self._session = session
        self._emit = emit
        self._own_prices = prices
        self._loop = asyncio.get_running_loop()
        self._asked: concurrent.futures.Future[str] | None = None
        self._given_up = False

    def __call__(self, messages: list[dict[str, Any]]) -> str:
        """The model's answer to chat messages of role user."""
        if self._given_up:
            raise ProviderError("the user did not wait for the summary")
        asked = self._asked = asyncio.run_coroutine_threadsafe(self._ask(messages), self._loop)
        try:
            return asked.result(LONGEST_S)
        except concurrent.futures.CancelledError:
            raise ProviderError("the user did not wait for the summary") from None
        except TimeoutError:
            asked.cancel()
            raise ProviderError(f"{self.model.full_name} wrote no summary within {LONGEST_S:.0f} s") from None

    def begin(self) -> None:
        """A preparation begins that may ask."""
        self._given_up = False

    def give_up(self) -> None:
        """The preparation that is under way is to end soon: no answer is waited for, and no more is asked."""
        self._given_up = True
        if self._asked is not None:
            self._asked.cancel()

    async def _ask(self, messages: list[dict[str, Any]]) -> str:
        self._emit(Notice(f"summarising with {self.model.full_name}", "summary"))
        began = time.monotonic()
        done = await self.provider.complete(self._body(messages))
        usage = done.usage
        prices = prices_for(self.model, self._own_prices)
        cost = cost_of(usage, prices) if usage.reported and prices is not None else None
        self._store.record_request(
            self._session, model=self.model.full_name, usage=usage, cost=cost, duration=time.monotonic() - began,
            finish=done.finish_reason, meta={"purpose": "summary"},
        )  # fmt: skip
        return text_of(done)

    def _body(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        wires = render_messages([user(str(message["content"])) for message in messages], self.model.api)
        if self.model.api == "openai.responses":
            return {"model": self.model.model, "input": wires}
        body: dict[str, Any] = {"model": self.model.model, "messages": wires}
        if self.model.api == "anthropic.messages":
            body["max_tokens"] = MOST_TOKENS
        return body


def text_of(done: Done) -> str:
    """The text of an answer."""
    return "\n".join(message.text for message in parse_message(done.message, done.api)).strip()
