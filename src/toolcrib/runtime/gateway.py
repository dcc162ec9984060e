"""Builds the gateway with its energy budget."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Self

from toolcrib.builtin import AdminTools
from toolcrib.config import Document
from toolcrib.errors import Refused, ToolcribError
from toolcrib.formats import PROVIDERS
from toolcrib.gateway import Completion, Gateway, ProcessSlots, StateSigner, SuspensionLimits
from toolcrib.gateway.energy import EnergyMeter
from toolcrib.gateway.next_actions import Learned
from toolcrib.identity import UserCache
from toolcrib.interfaces import EnergyAllowance, Handler, Shared, Step, Store
from toolcrib.mcp.meta import MAX_GATEWAYS, gateways_of_process
from toolcrib.model import Call, Tool
from toolcrib.observe import CallRecorder, new_id
from toolcrib.pipeline import compose
from toolcrib.policy import (
    Contexts,
    DisabledRule,
    EnergyRule,
    HardwareRule,
    InstalledRule,
    PermissionsRule,
    PinnedRule,
    Policy,
    RemovedRule,
)
from toolcrib.steps.spend import Spend
from toolcrib.supervisor import Supervisor

# --- Energy budgets: builds the meter, the policy rule and the step that charges calls, from the config ---


@dataclass(frozen=True)
class EnergyBudget:
    """The energy meter, the policy rule that reads it, and the contexts that bound it."""

    contexts: Contexts
    meter: EnergyMeter
    rule: EnergyRule

    @classmethod
    def of(cls, document: Document, contexts: Contexts, shared: Shared) -> Self:
        """Build it from the `energy` section of the config."""
        said = document.energy
        meter = EnergyMeter(shared, EnergyAllowance(start=said.start, recover=said.recover_per_s))
        return cls(contexts, meter, EnergyRule(contexts, meter.level, said.default_cost))

    def spend(self) -> Spend:
        """Return the step that charges the cost of a call."""
        return Spend(self.rule.counts, self.rule.cost, self.meter.take)

    def silent(self, call: Call) -> bool:
        """Whether slow-response messages are off: by the context, else if the provider owns the audio."""
        context = self.contexts.contexts.get(call.caller.context)
        if context is not None and context.slow_response is not None:
            return not context.slow_response
        named = call.origin.provider or (None if context is None else context.provider)
        provider = None if named is None else PROVIDERS.get(named)
        return provider is not None and provider.bounds.owns_audio


# --- Builds the policy, and the gateway on top of the policy, the steps and the supervisor ---

log = logging.getLogger(__name__)


async def own_id(store: Store, env: Mapping[str, str]) -> str:
    """Return the id of this gateway; raise Refused if the gateways that started it form a cycle.

    The environment holds the ids of all gateways above this one. A chain longer than MAX_GATEWAYS is
    refused as well.
    """
    try:
        own = await store.gateway_id()
    except ToolcribError as error:
        log.warning("the gateway has another id until its store takes writes: %s", error)
        own = token_hex(8)
    starters = gateways_of_process(env)
    if own in starters or len(starters) >= MAX_GATEWAYS:
        message = (
            "this gateway is started by an MCP server of its own config, and would start itself for ever; "
            "take the server whose command runs toolcrib with this config out of `mcp.servers`"
        )
        raise Refused("INVALID_REQUEST", message, path="mcp.servers", details={"gateways": list(starters)})
    return own


def make_policy(document: Document, contexts: Contexts, budget: EnergyBudget) -> Policy:
    """Build the policy: the rules that decide who may see and use a tool, in evaluation order."""
    hardware = HardwareRule(phone_microphone=document.apps.phone_microphone)
    permissions = PermissionsRule(deny=document.auth.default == "deny")
    return Policy(
        (
            InstalledRule(),
            contexts,
            DisabledRule(),
            hardware,
            budget.rule,
            PinnedRule(),
            permissions,
            RemovedRule(),
        )
    )


def make_gateway(
    policy: Policy,
    contexts: Contexts,
    steps: Sequence[Step],
    supervisor: Supervisor,
    journal: CallRecorder,
    *,
    completion: Completion,
    people: UserCache,
    admin: AdminTools,
    slots: ProcessSlots,
    state_signer: StateSigner,
    suspension_limits: SuspensionLimits,
    learned: Learned,
    id: str,
) -> Gateway:
    """Build the gateway; calls of admin tools that are denied or fail early are audited."""

    def chain(tool: Tool) -> Handler:
        return admin.audited(tool, compose(steps, tool, supervisor.handler(tool)))

    gateway = Gateway(
        policy,
        chain,
        completion,
        journal,
        new_id=new_id,
        contexts=lambda: contexts.contexts,
        servers=lambda: [state.id for state in supervisor.states() if state.family == "mcp"],
        present=people.present,
        slots=slots,
        state_signer=state_signer,
        suspension_limits=suspension_limits,
        denied=admin.denied,
        learned=learned,
        id=id,
    )
    _connect_subscriptions(gateway, supervisor)
    gateway.session_ended = supervisor.release
    return gateway


def _connect_subscriptions(gateway: Gateway, supervisor: Supervisor) -> None:
    subscriptions = gateway.resource_access.subscriptions
    supervisor.resource_updates.connect(subscriptions.wanted, subscriptions.updated)
    subscriptions.on_unused = supervisor.resubscribe
