//! Proves the behaviour of a binary with two turns against the built-in model on loopback: no key,
//! no tokens, a home of its own. Behaviour that is not proven is not relied on.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rejoin_agents::{Adapter, MentionEscape, ProofEnv, RepositoryIsolation};
use rejoin_core::{Micros, Outcome, Runtime, TotalsScope};
use rejoin_hub::Clock;
use rejoin_model::{ModelServer, Options, Step, StepUsage};

use crate::config::RunnerConfig;

mod matrix;
mod sandbox;
mod single_run;

pub use self::matrix::{ROWS, Weight};
pub(crate) use self::matrix::{matrix, no_resume};
pub(crate) use self::sandbox::Subject;
use self::single_run::{SessionUse, SingleRun};

const CANARY: &str = "word-in-the-canary-file";
const FIRST: &str = "word-of-the-first-message";
/// Number of tokens of the first turn: so many that the second shows if they are counted again, and
/// fewer than would make any CLI compact (Codex 0.166.0: 90 % of 258,400, regardless of its
/// configuration).
const DEAR: u64 = 100_000;
const ANSWER: &str = "word-of-the-first-answer";

/// Result of two turns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Proof {
    /// True if the first turn succeeded, so that the second was a fair trial.
    pub(crate) tried: bool,
    /// True if the second turn was shown the first one, once.
    pub(crate) resume: bool,
    pub(crate) totals: TotalsScope,
    pub(crate) usage: TotalsScope,
    pub(crate) neutral: MentionEscape,
    pub(crate) contained: RepositoryIsolation,
    /// True if a run took too long and so proved nothing.
    pub(crate) late: bool,
}

const NOTHING: Proof = Proof {
    tried: false,
    resume: false,
    totals: TotalsScope::Unproven,
    usage: TotalsScope::Unproven,
    neutral: MentionEscape::ByJoiner,
    contained: RepositoryIsolation::Untested,
    late: false,
};

/// Runs the proof. Never fails: an error means that nothing is proven.
pub(crate) async fn prove(
    config: &RunnerConfig,
    adapter: &'static dyn Adapter,
    program: &Path,
    runtime: &Runtime,
) -> Proof {
    let late = AtomicBool::new(false);
    let mut proof = NOTHING;
    for neutral in [MentionEscape::ByPlace, MentionEscape::ByJoiner] {
        if let Some(shown) = two_turns(config, adapter, program, runtime, neutral, &late).await {
            proof = shown;
            break;
        }
    }
    proof.late = late.load(Ordering::Relaxed);
    proof
}

/// Runs two turns. Returns None if this way of keeping text from being taken for commands did not
/// work.
async fn two_turns(
    config: &RunnerConfig,
    adapter: &'static dyn Adapter,
    program: &Path,
    runtime: &Runtime,
    neutral: MentionEscape,
    late: &AtomicBool,
) -> Option<Proof> {
    let scratch = tempfile::tempdir().ok()?;
    let (home, folder) = (scratch.path().join("home"), scratch.path().join("folder"));
    fs_err::create_dir_all(&folder).ok()?;
    let canary = scratch.path().join("canary.txt");
    fs_err::write(&canary, CANARY).ok()?;
    let marker = scratch.path().join("ran");
    let marker_path = marker.to_str()?;
    let repository = adapter.capabilities().repository;
    let hostile = repository.map_or_else(Vec::new, |it| it.hostile_repository(marker_path));
    put_files(&folder, &hostile)?;
    // A prompt of the repository counts as one of its programs.
    let told = |server: &ModelServer| {
        let mut requests = server.requests().into_iter();
        requests.any(|r| r.body.to_string().contains(marker_path))
    };
    let contained = |told: bool| match (hostile.is_empty(), told || marker.exists()) {
        (true, _) => RepositoryIsolation::NoFlags,
        (false, true) => RepositoryIsolation::Broken,
        (false, false) => RepositoryIsolation::Proven,
    };
    let scripts = [
        ("proof-dear".to_owned(), vec![answer(ANSWER, DEAR)]),
        ("proof-cheap".to_owned(), vec![answer("second answer", 1)]),
    ];
    let server = ModelServer::start(Options {
        scripts: scripts.into(),
        ..Options::default()
    })
    .await
    .ok()?;
    let url = server.url();
    let path = config.var("PATH").unwrap_or_default();
    let (env, model) = ready(adapter, &url, &home, &path)?;
    let bench = SingleRun {
        model: model.as_deref(),
        adapter,
        program,
        runtime,
        folder: &folder,
        env: &env,
        neutral,
        wall: &config.wall,
        late,
    };

    let pin = Clock.pin_id().ok()?.to_string();
    let text = format!("/clear {FIRST} @{} #s:proof-dear", canary.display());
    let first = bench.turn(&pin, SessionUse::Anew, &text).await?;
    let shown = server
        .requests()
        .last()
        .map(|r| r.history().to_string())
        .unwrap_or_default();
    let plain =
        first.outcome == Outcome::Succeeded && shown.contains(FIRST) && !shown.contains(CANARY);
    if !plain {
        return None;
    }
    let told_first = told(&server);
    server.clear();
    let Some(second) = bench
        .turn(
            &pin,
            first
                .session
                .as_ref()
                .map_or(SessionUse::Anew, SessionUse::Resume),
            "second message #s:proof-cheap",
        )
        .await
    else {
        return Some(Proof {
            tried: true,
            neutral,
            contained: contained(told_first || told(&server)),
            ..NOTHING
        });
    };
    let shown = server
        .requests()
        .last()
        .map(|r| r.history().to_string())
        .unwrap_or_default();
    let once = |word: &str| shown.matches(word).count() == 1;
    let resume = second.outcome == Outcome::Succeeded
        && once(FIRST)
        && once(ANSWER)
        && once("second message");
    let totals = match (first.total, second.total) {
        (Some(dear), Some(cheap)) if resume && dear > Micros(0) && cheap > Micros(0) => {
            if cheap >= dear {
                TotalsScope::Cumulative
            } else {
                TotalsScope::PerRun
            }
        }
        _ => TotalsScope::Unproven,
    };
    let (dear, cheap) = (first.usage.all_input(), second.usage.all_input());
    let usage = match resume && dear >= DEAR {
        true if cheap >= dear => TotalsScope::Cumulative,
        true => TotalsScope::PerRun,
        false => TotalsScope::Unproven,
    };
    let told = told_first || told(&server);
    server.stop().await;
    Some(Proof {
        tried: true,
        resume,
        totals,
        usage,
        neutral,
        contained: contained(told),
        late: false,
    })
}

fn answer(text: &str, input: u64) -> Step {
    let usage = StepUsage {
        input_tokens: Some(input),
        cache_read_input_tokens: Some(0),
        cache_creation_input_tokens: Some(0),
    };
    Step {
        usage: Some(usage),
        ..Step::text(text)
    }
}

type Env = Vec<(String, String)>;

/// Prepares a private home with the files that the adapter needs. Returns its environment and the
/// model to name.
fn ready(
    adapter: &'static dyn Adapter,
    url: &str,
    home: &Path,
    path: &str,
) -> Option<(Env, Option<String>)> {
    fs_err::create_dir_all(home).ok()?;
    let setup = adapter.capabilities().proof?.proof(&ProofEnv { url, home });
    put_files(home, &setup.files)?;
    let mut env = vec![("PATH".to_owned(), path.to_owned())];
    env.extend(setup.env);
    Some((env, setup.model))
}

/// Writes files below a folder, each at its relative path.
fn put_files(folder: &Path, files: &[(String, String)]) -> Option<()> {
    for (file, text) in files {
        let file = folder.join(file);
        fs_err::create_dir_all(file.parent()?).ok()?;
        fs_err::write(file, text).ok()?;
    }
    Some(())
}
