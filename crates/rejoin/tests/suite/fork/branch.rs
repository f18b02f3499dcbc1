//! One conversation of several in a world, each with its own book of what the model must be shown.

use std::path::PathBuf;
use std::process::Child;

use rejoin_model::Request;
use rejoin_testkit::{Done, World, answer, assert_shown, user};
use serde_json::Value;

pub(super) struct Branch {
    /// With a letter that no handle has: those are looked up first.
    key: String,
    pub(super) words: Vec<String>,
}

impl Branch {
    pub(super) fn new(key: &str) -> Self {
        Self {
            key: key.to_owned(),
            words: vec![],
        }
    }

    /// A new conversation with what was said here so far.
    #[track_caller]
    pub(super) fn fork(&self, world: &World, key: &str, more: &[&str]) -> Self {
        let mut args = vec!["fork", "--json", &self.key, "-k", key];
        args.extend(more);
        let made = world.run(&args).ok().json();
        assert_ne!(made["conversation_id"], made["parent_id"], "{made}");
        let through = more
            .iter()
            .position(|arg| *arg == "--at")
            .and_then(|at| more[at + 1].parse().ok())
            .unwrap_or(self.words.len());
        Self {
            key: key.to_owned(),
            words: self.words[..through].to_vec(),
        }
    }

    /// A turn that answers with its word, as `explain --next` says before.
    #[track_caller]
    pub(super) fn says(&mut self, world: &World, n: usize, verdict: &str) -> Value {
        self.says_so(world, n, verdict, &format!("#s:a{n}"), &[])
    }

    #[track_caller]
    pub(super) fn says_so(
        &mut self,
        world: &World,
        n: usize,
        verdict: &str,
        script: &str,
        more: &[&str],
    ) -> Value {
        let next = (!self.words.is_empty() && more.is_empty()).then(|| {
            let next = ["explain", &self.key, "--next", "--json"];
            world.run(&next).ok().json()
        });
        let done = Done::of(self.starts_so(world, n, script, more));
        let turn = self.said(world, n, verdict, &done);
        if let Some(next) = next {
            assert_eq!(
                (&next["verdict"], &next["reason"]),
                (&turn["verdict"], &turn["reason"]),
                "{next:#}"
            );
            assert_eq!(next["sent"]["caught_up"], turn["sent"]["caught_up"]);
        }
        turn
    }

    pub(super) fn starts(&self, world: &World, n: usize) -> Child {
        self.starts_so(world, n, &format!("#s:a{n}"), &[])
    }

    pub(super) fn starts_so(&self, world: &World, n: usize, script: &str, more: &[&str]) -> Child {
        let text = format!("{} {script}", user(n));
        let mut args = vec!["send", "--json", "-k", &self.key];
        if !more.contains(&"-a") {
            args.extend(["-m", world.cli.models()[0]]);
        }
        args.extend(more);
        args.push(&text);
        world.spawn(&args)
    }

    /// What was sent was answered, and everything before it shown once.
    #[track_caller]
    pub(super) fn said(&mut self, world: &World, n: usize, verdict: &str, done: &Done) -> Value {
        assert_eq!(done.code, 0, "{done:?}");
        let turn = done.json();
        let told = (&turn["verdict"], &turn["text"]);
        assert_eq!(told, (&verdict.into(), &answer(n).into()), "{turn:#}");
        self.words.push(user(n));
        assert_shown(&shown(world, n), &self.words);
        self.words.push(answer(n));
        turn
    }

    /// It ended without an answer: the next turn shows it all the same.
    pub(super) fn unanswered(&mut self, n: usize) {
        self.words.push(user(n));
    }

    #[track_caller]
    pub(super) fn last_turn(&self, world: &World) -> Value {
        let shown = world.run(&["show", "--json", &self.key]).ok().json();
        shown["turns"].as_array().unwrap().last().unwrap().clone()
    }
}

/// What the model was shown with message N as the newest.
#[track_caller]
pub(super) fn shown(world: &World, n: usize) -> Request {
    let about = |r: &Request| r.history().to_string().contains(&user(n));
    let mut asked = world.model.requests();
    asked.retain(about);
    asked.pop().unwrap()
}

/// Every session with its bytes.
pub(super) fn files(world: &World) -> Vec<(PathBuf, Vec<u8>)> {
    let read = |file: PathBuf| (file.clone(), std::fs::read(file).unwrap());
    world.sessions().into_iter().map(read).collect()
}
