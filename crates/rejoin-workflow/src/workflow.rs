//! Workflow as the file describes it, with all names resolved.

use serde_json::Value;

use crate::template::{Expression, Template};

/// Workflow of a file that has no mistakes.
#[derive(Debug, Clone, PartialEq)]
pub struct Workflow {
    pub name: String,
    pub description: Option<String>,
    pub inputs: Vec<Input>,
    /// Most steps that run at the same time.
    pub max_parallel: usize,
    pub timeout_ms: Option<u64>,
    pub max_cost_usd: Option<f64>,
    /// Steps in the order of the file.
    pub steps: Vec<Step>,
}

/// Declared input.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    pub name: String,
    pub kind: InputKind,
    pub required: bool,
    pub default: Option<Value>,
    pub description: Option<String>,
}

/// Type of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InputKind {
    #[default]
    String,
    Integer,
    Number,
    Boolean,
    List,
    Object,
}

/// Step of a workflow. Numbers of steps are positions in [`Workflow::steps`].
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub id: String,
    pub work: Work,
    /// Steps that this one waits for directly, in file order: `needs`, `continue_from`, `fork_from`.
    pub needs: Vec<usize>,
    pub when: Option<Expression>,
    pub retry: Retry,
    pub timeout_ms: Option<u64>,
    pub max_cost_usd: Option<f64>,
    pub for_each: Option<Expression>,
    /// `loop` of the file.
    pub repeat: Option<Repeat>,
    /// Line of the step's id in the file.
    pub line: usize,
}

/// Work of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    Agent(Box<AgentWork>),
    Run(CommandWork),
    Shell(ShellWork),
    /// Question to a person.
    Approve(Template),
}

/// Turn of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentWork {
    /// Agent of the step. Nothing: the agent of the continued conversation, else the configured one.
    pub agent: Option<String>,
    /// Model of the step. The default model of the file applies only to its default agent.
    pub model: Option<String>,
    pub tier: Option<String>,
    pub prompt: Template,
    pub session: Session,
    pub continuity: Continuity,
    pub permission: Option<String>,
    pub tools: Option<Vec<String>>,
    pub deny_tools: Option<Vec<String>>,
    /// JSON Schema of the answer.
    pub output: Option<Value>,
    pub workdir: Option<Template>,
}

/// Command with its arguments, without a shell.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandWork {
    pub argv: Vec<Template>,
    pub env: Vec<(String, Template)>,
    pub workdir: Option<Template>,
}

/// Shell script. Values reach it as environment variables only.
#[derive(Debug, Clone, PartialEq)]
pub struct ShellWork {
    /// Script as the file holds it, never a template.
    pub script: String,
    pub env: Vec<(String, Template)>,
    pub workdir: Option<Template>,
}

/// Conversation of an agent step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Session {
    New,
    /// Continues the conversation and session of a step.
    Continue(usize),
    /// Continues a copy of a step's conversation.
    Fork {
        of: usize,
        /// False: `continue_from` of a step whose session another step takes, or of each item of a
        /// `for_each` step.
        declared: bool,
    },
}

/// Demand on a continued session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Continuity {
    /// The step fails if the session cannot be resumed or restored.
    #[default]
    Required,
    /// A new session with the transcript is accepted.
    Best,
}

/// Retries of a step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Retry {
    /// Most retries after the first attempt.
    pub max: u32,
    /// Causes from [`RETRY_CAUSES`](crate::RETRY_CAUSES). Empty: the caller's default.
    pub on: Vec<String>,
    pub wait_ms: u64,
}

/// Loop that ends with a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Repeat {
    /// First step of the loop.
    pub back_to: usize,
    /// Condition for another round, evaluated after the step.
    pub condition: Expression,
    /// Most rounds, the first included.
    pub max: u32,
}

impl InputKind {
    /// All types with their names in a file.
    pub(crate) const NAMES: [(&'static str, Self); 6] = [
        ("string", Self::String),
        ("integer", Self::Integer),
        ("number", Self::Number),
        ("boolean", Self::Boolean),
        ("list", Self::List),
        ("object", Self::Object),
    ];

    /// Returns the type's name in a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::List => "list",
            Self::Object => "object",
        }
    }

    /// Returns true if the value is of the type.
    pub fn accepts(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::List => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}

impl Session {
    /// Returns the step whose conversation this one continues or copies.
    pub fn source(self) -> Option<usize> {
        match self {
            Self::New => None,
            Self::Continue(of) | Self::Fork { of, .. } => Some(of),
        }
    }
}

impl Work {
    /// Returns the kind as a user names it: `agent`, `run` or `approve`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Agent(_) => "agent",
            Self::Run(_) | Self::Shell(_) => "run",
            Self::Approve(_) => "approve",
        }
    }
}
