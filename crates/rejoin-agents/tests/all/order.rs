//! Orders for every adapter: a plan can only come from a decision, so this asks for one.

use rejoin_agents::{CommandSpec, Memory, MentionEscape, RepositoryConfig, RunOrder, adapter};
use rejoin_core::{
    AgentName, Capability, Composed, Folder, FolderFact, HistoryFacts, Permissions,
    PermissionsFact, Pin, PinFacts, PinId, PinState, Policy, Prefix, Request, Runtime, Scope,
    SeenPrefix, Sent, SessionFact, SessionId, Situation, SnapshotFact, TurnPlan, Version, decide,
    in_scope,
};

pub(crate) const PROMPT_ID: &str = "11111111-1111-4111-8111-111111111111";
pub(crate) const NEW: &str = "22222222-2222-4222-8222-222222222222";
pub(crate) const OLD: &str = "33333333-3333-4333-8333-333333333333";

#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Start,
    Resume,
    Reseed,
    /// Of a session of another conversation.
    Fork,
}

pub(crate) fn plan(agent: &str, session: &str, kind: Kind) -> TurnPlan {
    let agent = AgentName::new(agent).unwrap();
    let runtime = Runtime {
        product: "Claude Code".into(),
        version: Version("2.1.197".into()),
    };
    let pin = Pin {
        instructions: None,
        id: PinId::from_parts(1, [1; 10]),
        agent: agent.clone(),
        session: SessionId::new(session).unwrap(),
        state: PinState::Confirmed,
        seen: SeenPrefix {
            summarised: 0,
            value: in_scope(Scope::Full, &agent, &[]).value(),
            messages: 2,
            last_seq: 2,
            last: None,
        },
        folder: Folder {
            path: "/w".into(),
            device: 1,
            inode: 1,
            checkout: None,
        },
        runtime: runtime.clone(),
        machine: "m".into(),
        home: String::new(),
        files: vec![],
        cursor: None,
        total: None,
        usage: None,
        context: None,
        model: None,
        provider: None,
        failures: 0,
        compacted: false,
    };
    let facts = PinFacts {
        pin: &pin,
        prefix: Prefix::Holds,
        folder: FolderFact::Same,
        has_provider: true,
        session: SessionFact::Untouched,
        snapshot: SnapshotFact::None,
        elsewhere: false,
        in_use: None,
        writers_visible: true,
        forked_from: matches!(kind, Kind::Fork).then_some("tmqx"),
    };
    let situation = Situation {
        agent: &agent,
        request: Request::default(),
        policy: Policy::default(),
        history: match kind {
            Kind::Start => HistoryFacts {
                messages: 0,
                answered: false,
            },
            Kind::Resume | Kind::Reseed | Kind::Fork => HistoryFacts {
                messages: 2,
                answered: true,
            },
        },
        runtime: &runtime,
        capability: Capability::Proven,
        model: None,
        window: None,
        permissions: PermissionsFact::Expressible,
        pin: matches!(kind, Kind::Resume | Kind::Fork).then_some(facts),
    };
    decide(&situation).plan.unwrap()
}

/// What is asked of an adapter.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) agent: &'a str,
    /// The one to resume.
    pub(crate) session: &'a str,
    pub(crate) kind: Kind,
    pub(crate) context: Option<&'a str>,
    pub(crate) message: &'a str,
    pub(crate) model: Option<&'a str>,
    pub(crate) permissions: &'a Permissions,
    pub(crate) raw: bool,
    pub(crate) neutral: MentionEscape,
    pub(crate) extra: &'a [String],
    pub(crate) env: &'a [(String, String)],
    pub(crate) servers: &'a [String],
}

/// What a fork begins with.
pub(crate) const ORIGIN: &str = "/private/origin.jsonl";

const EDIT: &Permissions = &Permissions {
    mode: rejoin_core::PermissionMode::Edit,
    tools: None,
    deny_tools: vec![],
    commands: false,
};

pub(crate) const PLAIN: Ask<'static> = Ask {
    agent: "claude",
    session: OLD,
    kind: Kind::Start,
    context: None,
    message: "hello",
    model: Some("sonnet"),
    permissions: EDIT,
    raw: false,
    neutral: MentionEscape::ByPlace,
    extra: &[],
    env: &[],
    servers: &[],
};

pub(crate) fn command(ask: &Ask<'_>) -> CommandSpec {
    let plan = plan(ask.agent, ask.session, ask.kind);
    let composed = Composed {
        context: ask.context.map(str::to_owned),
        message: ask.message.into(),
        sent: Sent::default(),
    };
    let session = SessionId::new(NEW).unwrap();
    let order = RunOrder {
        plan: &plan,
        composed: &composed,
        new_session: &session,
        turn: "01900000-0000-7000-8000-000000000001",
        home: "/home/u/.cli",
        place: Some("place/of/the/session"),
        origin: matches!(ask.kind, Kind::Fork).then_some(ORIGIN),
        env: ask.env,
        prompt_id: PROMPT_ID,
        folder: "/w",
        model: ask.model,
        permissions: ask.permissions,
        mcp_servers: ask.servers,
        repository: RepositoryConfig::Ignored,
        memory: &Memory::default(),
        extra_args: ask.extra,
        max_cost: None,
        outside: &[],
        raw: ask.raw,
        neutral: ask.neutral,
        asks: false,
        stays: false,
    };
    let adapter = adapter(ask.agent).unwrap();
    let command = adapter.command(&order);
    match ask.kind {
        Kind::Fork => {
            let fork = adapter.capabilities().fork.unwrap();
            fork.fork(command, &order).unwrap()
        }
        Kind::Start | Kind::Resume | Kind::Reseed => command,
    }
}
