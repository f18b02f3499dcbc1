//! Idle limit of a run: a CLI that hangs does not block its conversation for ever.
//!
//! A run is idle while its CLI prints nothing, no tool call is open and no person is asked. The shim
//! sees neither calls nor questions, so the process that follows the run enforces this limit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rejoin_agents::EndCause;
use rejoin_core::{Class, EventBody, Failure, Outcome};
use rejoin_hub::Claimed;

use crate::config::RunnerConfig;
use crate::shim::{ShimEnd, StopReason};

/// Default limit. Models may think for a long time without output, but not this long.
const USUAL: Duration = Duration::from_mins(30);
/// Default of the demo agent, which a prompt can make wait for an hour.
const DEMO: Duration = Duration::from_hours(2);
/// Default of an agent that the configuration describes, because its tool calls are not visible.
const DESCRIBED: Duration = Duration::from_hours(6);
/// Time after which an open tool call no longer counts as activity.
const TOOL_MAY_TAKE: Duration = Duration::from_hours(6);
/// File in the folder of a run that was stopped by this limit.
const MARK: &str = "idle";

/// Returns the idle limit of a turn: its own, the configured one of its agent, or the default.
/// Returns None if there is no limit.
pub(crate) fn limit(config: &RunnerConfig, claimed: &Claimed) -> Option<Duration> {
    let name = claimed.turn.agent.as_str();
    let own = claimed.request.idle_ms.map(Duration::from_millis);
    let configured = || config.agent(name).idle_timeout;
    let default = || {
        if config
            .described
            .iter()
            .any(|adapter| adapter.name() == name)
        {
            DESCRIBED
        } else if name == "demo" {
            DEMO
        } else {
            USUAL
        }
    };
    let limit = own.or_else(configured).unwrap_or_else(default);
    (!limit.is_zero()).then_some(limit)
}

/// Activity of a run.
pub(super) struct Idle {
    limit: Option<Duration>,
    heard: Instant,
    /// Open tool calls and the times at which they began.
    calls: BTreeMap<String, Instant>,
    stderr: PathBuf,
    stderr_length: u64,
    folder: PathBuf,
}

impl Idle {
    pub(super) fn new(limit: Option<Duration>, folder: &Path) -> Self {
        Self {
            limit,
            heard: Instant::now(),
            calls: BTreeMap::new(),
            stderr: folder.join("err"),
            stderr_length: 0,
            folder: folder.to_owned(),
        }
    }

    /// Notes that the CLI printed something.
    pub(super) fn heard(&mut self) {
        self.heard = Instant::now();
    }

    /// Returns the time since the CLI last printed something.
    pub(super) fn silence(&self) -> Duration {
        self.heard.elapsed()
    }

    /// Notes the tool calls that begin and end in these events.
    pub(super) fn see(&mut self, events: &[EventBody]) {
        for event in events {
            if let EventBody::ToolCall { id, .. } = event {
                self.calls.insert(id.clone(), Instant::now());
            } else if let EventBody::ToolResult { id, .. } = event {
                self.calls.remove(id);
            }
        }
    }

    /// Returns true if the limit is exceeded, and marks the run as stopped by it. `waits` is true
    /// while a person is asked, which counts as activity.
    pub(super) fn is_exceeded(&mut self, waits: bool) -> bool {
        let Some(limit) = self.limit else {
            return false;
        };
        let length = fs_err::metadata(&self.stderr).map_or(0, |meta| meta.len());
        let works = self
            .calls
            .values()
            .any(|since| since.elapsed() < TOOL_MAY_TAKE);
        if waits || works || length != self.stderr_length {
            self.stderr_length = length;
            self.heard();
        }
        if self.silence() < limit {
            return false;
        }
        // The mark is a file because another process may have to settle the run.
        drop(fs_err::write(self.folder.join(MARK), ""));
        true
    }
}

/// Returns the cause of an end. A run that the idle limit stopped was not cancelled.
pub(super) fn cause(folder: &Path, end: &ShimEnd, cancelled: bool) -> EndCause {
    let stopped = matches!(end.why, StopReason::Interrupted | StopReason::Stopped);
    if stopped && !cancelled && folder.join(MARK).exists() {
        return EndCause::IdleLimit;
    }
    of_end(end, cancelled)
}

fn of_end(end: &ShimEnd, cancelled: bool) -> EndCause {
    match end.why {
        StopReason::Exited if cancelled => EndCause::Cancelled,
        StopReason::Exited => EndCause::ByItself,
        StopReason::Wall => EndCause::WallLimit,
        StopReason::Idle => EndCause::IdleLimit,
        StopReason::Stopped | StopReason::Interrupted => EndCause::Cancelled,
        StopReason::SpoolFull => EndCause::SpoolFull,
        StopReason::DiskFull => EndCause::DiskFull,
        StopReason::NotStarted => EndCause::NotStarted,
        // The last output of the run decides.
        StopReason::LeaseRanOut => EndCause::Unseen,
    }
}

/// Returns the outcome of a run that was stopped by the idle limit.
pub(super) fn outcome(limit: Option<Duration>) -> Outcome {
    let minutes = limit.map_or(0, |limit| limit.as_secs() / 60);
    let time = match (limit, minutes) {
        (Some(limit), 0) => format!("{} s", limit.as_secs()),
        (_, minutes) => format!("{minutes} min"),
    };
    Outcome::Failed(Failure {
        class: Class::IdleLimit,
        message: format!("the agent printed nothing for {time}"),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_millis(1);

    fn idle() -> (tempfile::TempDir, Idle) {
        let dir = tempfile::tempdir().unwrap();
        let idle = Idle::new(Some(LIMIT), dir.path());
        (dir, idle)
    }

    fn call(id: &str) -> EventBody {
        EventBody::ToolCall {
            id: id.into(),
            tool: "Bash".into(),
            input: serde_json::Value::Null,
            parent_tool: None,
            kind: None,
            subject: None,
        }
    }

    fn result(id: &str) -> EventBody {
        EventBody::ToolResult {
            id: id.into(),
            is_error: false,
            text: String::new(),
            exit_code: None,
        }
    }

    fn silent(idle: &Idle) {
        while idle.silence() <= LIMIT {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn silence_is_idle_but_not_during_a_tool_call_or_a_question() {
        let (dir, mut idle) = idle();
        idle.see(&[call("a"), call("b"), result("a")]);
        silent(&idle);
        assert!(!idle.is_exceeded(false), "a tool runs");
        idle.see(&[result("b")]);
        silent(&idle);
        assert!(!idle.is_exceeded(true), "a person is asked");
        silent(&idle);
        fs_err::write(dir.path().join("err"), "x").unwrap();
        assert!(!idle.is_exceeded(false), "stderr grew");
        assert!(!dir.path().join(MARK).exists());
        silent(&idle);
        assert!(idle.is_exceeded(false));
        assert!(dir.path().join(MARK).exists());
    }

    #[test]
    fn without_a_limit_nothing_is_idle() {
        let dir = tempfile::tempdir().unwrap();
        let mut idle = Idle::new(None, dir.path());
        silent(&idle);
        assert!(!idle.is_exceeded(false));
    }
}
