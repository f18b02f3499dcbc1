//! Beginning of a step: its texts, its conversation, and its turn.

use std::collections::BTreeMap;
use std::path::Path;

use rejoin_agents::WORKFLOW_AGENT;
use rejoin_core::{AgentName, CommandStep};
use rejoin_hub::{Accepted, ForkRequest, IfBusy, MessageRequest, StepStatus, Target};
use rejoin_store::Conversation;
use rejoin_workflow::{AgentWork, Continuity, Scope, Session, Template, Work};
use serde_json::Value;

use super::Turns;
use super::engine::{Engine, Slot, known};
use crate::error::{Error, Result};
use crate::folder;
use crate::send::Draft;

/// Message of a retry, if the agent was already told the prompt.
const AGAIN: &str = "The answer to the message above did not arrive. Please answer it now.";
/// Most characters of a title.
const TITLE: usize = 60;

/// Reason why a step cannot begin.
pub(super) enum Unbegun {
    /// The step fails with this class and sentence.
    Fails(&'static str, String),
    /// The store cannot be used now: the run is continued later.
    Later(Error),
}

impl From<Error> for Unbegun {
    fn from(error: Error) -> Self {
        if matches!(&error, Error::Hub(hub) if hub.is_store()) {
            return Self::Later(error);
        }
        Self::Fails("not_started", error.to_string())
    }
}

impl From<rejoin_hub::Error> for Unbegun {
    fn from(error: rejoin_hub::Error) -> Self {
        Error::from(error).into()
    }
}

fn value(name: &str) -> impl Fn(String) -> Unbegun {
    move |why| {
        Unbegun::Fails(
            "invalid_value",
            format!("`{name}` cannot be filled in: {why}"),
        )
    }
}

impl<T: Turns> Engine<'_, T> {
    /// Accepts the turn of a slot, and stores it. None if the slot ended at once. A turn that was
    /// accepted before a crash is found again by its key.
    pub(super) async fn begin(&mut self, slot: Slot) -> Result<Option<Accepted>> {
        if self.options.rehearsal && !matches!(self.step(slot.n).work, Work::Agent(_)) {
            self.rehearse(slot).await?;
            return Ok(None);
        }
        let accepted = match self.accept(slot).await {
            Ok(accepted) => accepted,
            Err(Unbegun::Later(error)) => return Err(error),
            Err(Unbegun::Fails(class, why)) => {
                self.fail(slot, class, why).await?;
                return Ok(None);
            }
        };
        let (now, from) = (self.hub.clock.now(), self.origin(slot.n));
        let step = self.get_mut(slot);
        step.status = StepStatus::Running;
        step.stored.started_at = step.stored.started_at.or(Some(now));
        step.stored.ended_at = None;
        step.stored.attempts += 1;
        step.stored.conversation = Some(accepted.conversation);
        step.stored.turn = Some(accepted.turn);
        step.state.continued_from = from;
        step.state.wake_at = None;
        self.save(&[slot]).await?;
        Ok(Some(accepted))
    }

    /// Returns the id of the step whose conversation a step continues or copies.
    fn origin(&self, n: usize) -> Option<String> {
        let Work::Agent(work) = &self.step(n).work else {
            return None;
        };
        work.session.source().map(|of| self.step(of).id.clone())
    }

    async fn accept(&self, slot: Slot) -> Result<Accepted, Unbegun> {
        let mut request = self.request(slot)?;
        let (target, named) = self.target(slot, &request).await?;
        let known = match &target {
            Target::Conversation(id) => {
                let mut read = self
                    .hub
                    .store
                    .read()
                    .await
                    .map_err(rejoin_hub::Error::from)?;
                let found = read.conversations().get(*id).await;
                found.map_err(rejoin_hub::Error::from)?
            }
            Target::New | Target::Key(_) => None,
        };
        let draft = Draft::new(&request, self.defaults, known.as_ref())?;
        if let Some(conversation) = &known
            && !has_answered(conversation, draft.answering())
        {
            // An agent that joins the conversation is told the transcript.
            request.no_reseed = false;
        }
        let draft = Draft::new(&request, self.defaults, known.as_ref())?;
        let path = named.unwrap_or_else(|| match &known {
            Some(_) => draft.folder(),
            None => self.options.workdir.clone(),
        });
        let found = folder::look(Path::new(&path));
        let folder = found.map_err(|source| Error::Folder { path, source })?;
        let config = &self.runner.config;
        let mut incoming = draft
            .incoming(&self.hub, config, target, folder.path.clone())
            .await?;
        incoming.request.roots.clone_from(&self.options.roots);
        if !incoming.request.may_enter(Path::new(&folder.path)) {
            return Err(Error::OutsideRoots.into());
        }
        let holder = self.turns.holder();
        Ok(self.hub.accept(&incoming, holder.as_deref()).await?)
    }

    /// Returns the conversation of a slot, and the folder that the step names.
    async fn target(
        &self,
        slot: Slot,
        request: &MessageRequest,
    ) -> Result<(Target, Option<String>), Unbegun> {
        let step = self.get(slot);
        let named = request.workdir.clone();
        if let Some(own) = step.stored.conversation {
            return Ok((Target::Conversation(own), named));
        }
        let Work::Agent(work) = &self.step(slot.n).work else {
            return Ok((Target::New, named));
        };
        let of = match work.session {
            Session::New => return Ok((Target::New, named)),
            Session::Continue(of) | Session::Fork { of, .. } => of,
        };
        let (from, id) = (self.get(Slot { n: of, item: None }), &self.step(of).id);
        let nothing = || {
            let text = format!("there is nothing to continue: {id} has no conversation");
            Unbegun::Fails("no_conversation", text)
        };
        let conversation = from.stored.conversation.ok_or_else(nothing)?;
        if matches!(work.session, Session::Continue(_)) && !step.state.forks {
            return Ok((Target::Conversation(conversation), named));
        }
        let fork = ForkRequest {
            at: self
                .hub
                .last_message_of(from.stored.turn.ok_or_else(nothing)?)
                .await?,
            title: Some(self.title(slot)),
            client_key: Some(format!("{} fork", self.key(slot))),
            ..ForkRequest::default()
        };
        let fork = self.hub.fork(conversation, &fork).await?;
        Ok((Target::Conversation(fork.conversation_id), named))
    }

    /// Returns the idempotency key of the turn that a slot begins now.
    fn key(&self, slot: Slot) -> String {
        let step = self.get(slot);
        let item = slot
            .item
            .map(|item| format!("[{item}]"))
            .unwrap_or_default();
        let (n, state) = (slot.n, &step.state);
        format!(
            "workflow {} {n}{item} {}.{}",
            self.run.id, state.round, state.attempt
        )
    }

    fn title(&self, slot: Slot) -> String {
        let title = format!("{}: {}", self.run.name, self.get(slot).stored.id);
        title.chars().take(TITLE).collect()
    }

    /// Returns the values that a slot sees.
    pub(super) fn scope_of(&self, slot: Slot) -> std::borrow::Cow<'_, Scope> {
        let item = &self.get(slot).state.item;
        if item.is_none() {
            return std::borrow::Cow::Borrowed(&self.scope);
        }
        let mut own = self.scope.clone();
        own.item.clone_from(item);
        own.index = slot.item;
        std::borrow::Cow::Owned(own)
    }

    /// Returns the message of a slot.
    fn request(&self, slot: Slot) -> Result<MessageRequest, Unbegun> {
        let (step, scope) = (self.step(slot.n), self.scope_of(slot));
        let request = MessageRequest {
            title: Some(self.title(slot)),
            client_key: Some(self.key(slot)),
            timeout_ms: step.timeout_ms,
            confirm: true,
            if_busy: IfBusy::Wait,
            ..MessageRequest::default()
        };
        let folder = |workdir: &Option<Template>| {
            let folder = workdir.as_ref().map(|folder| folder.render(&scope));
            folder.transpose().map_err(value("workdir"))
        };
        match &step.work {
            Work::Agent(work) => self.prompt(slot, work, &scope, request),
            Work::Run(work) => {
                let argv = work.argv.iter().map(|arg| arg.render(&scope));
                let run: Vec<String> = argv.collect::<Result<_, _>>().map_err(value("run"))?;
                let env = environment(&work.env, &scope)?;
                if run.iter().any(|arg| arg.contains('\0')) {
                    let text = "an argument of `run` holds a NUL, which no program can be given";
                    return Err(Unbegun::Fails("invalid_value", text.into()));
                }
                command(
                    request,
                    &CommandStep::Run { run, env },
                    folder(&work.workdir)?,
                )
            }
            Work::Shell(work) => {
                let env = environment(&work.env, &scope)?;
                let shell = work.script.clone();
                command(
                    request,
                    &CommandStep::Shell { shell, env },
                    folder(&work.workdir)?,
                )
            }
            Work::Approve(question) => {
                let approve = question.render(&scope).map_err(value("approve"))?;
                command(request, &CommandStep::Approve { approve }, None)
            }
        }
    }

    fn prompt(
        &self,
        slot: Slot,
        work: &AgentWork,
        scope: &Scope,
        request: MessageRequest,
    ) -> Result<MessageRequest, Unbegun> {
        let (step, state) = (self.step(slot.n), &self.get(slot).state);
        let mut text = match &state.follow_up {
            Some(text) => text.clone(),
            None => work.prompt.render(scope).map_err(value("prompt"))?,
        };
        if let (Some(schema), None) = (&work.output, &state.follow_up) {
            text = format!("{text}\n\n{}", answer_form(schema));
        }
        // After a failed first turn there may be no session yet.
        let answered = state.round > 0 || !state.invalid.is_empty();
        let own = self.get(slot).stored.conversation.is_some();
        let continues = work.session != Session::New || own && answered;
        let workdir = match &work.workdir {
            Some(folder) => Some(folder.render(scope).map_err(value("workdir"))?),
            None => None,
        };
        let demo = self.options.rehearsal;
        let unless_demo = |value: &Option<String>| value.clone().filter(|_| !demo);
        Ok(MessageRequest {
            text,
            agent: if demo {
                Some("demo".into())
            } else {
                work.agent.clone()
            },
            model: unless_demo(&work.model),
            tier: unless_demo(&work.tier),
            climb: work.tier.is_some() && !demo,
            permission: unless_demo(&work.permission),
            tools: work.tools.clone().filter(|_| !demo),
            deny_tools: work.deny_tools.clone().filter(|_| !demo),
            no_reseed: continues && work.continuity == Continuity::Required,
            max_cost_usd: step.max_cost_usd.filter(|_| !demo),
            workdir,
            ..request
        })
    }

    /// Returns the message with which a slot is tried again, after its agent was told the prompt.
    pub(super) fn again(&self, slot: Slot) -> Option<String> {
        match self.step(slot.n).work {
            Work::Agent(_) => Some(AGAIN.to_owned()),
            Work::Run(_) | Work::Shell(_) | Work::Approve(_) => None,
        }
    }

    /// Returns the turn of a slot that already ran, to follow it further.
    pub(super) fn follow(&mut self, slot: Slot, turn: rejoin_core::TurnId) -> Option<Accepted> {
        let step = self.get_mut(slot);
        step.stored.turn = Some(turn);
        step.stored.conversation.map(|c| known(c, turn))
    }
}

/// Returns true if the agent has answered in the conversation, or in the one that it is a copy of. A
/// turn with a tier leaves no settings.
fn has_answered(c: &Conversation, agent: &AgentName) -> bool {
    c.agent == *agent || c.settings.contains_key(agent.as_str())
}

/// Returns the request for an answer of this form.
fn answer_form(schema: &Value) -> String {
    format!(
        "End your answer with one JSON value in a ```json block. It must match this JSON Schema:\n{schema}"
    )
}

/// Returns the message of a command or approval step.
fn command(
    request: MessageRequest,
    step: &CommandStep,
    workdir: Option<String>,
) -> Result<MessageRequest, Unbegun> {
    let text =
        serde_json::to_string(step).map_err(|e| Unbegun::Fails("invalid_value", e.to_string()))?;
    // A command does what it wants: callers with a lower ceiling may not have it run.
    let permission = match step {
        CommandStep::Approve { .. } => "read-only",
        CommandStep::Run { .. } | CommandStep::Shell { .. } => "full",
    };
    Ok(MessageRequest {
        text,
        agent: Some(WORKFLOW_AGENT.into()),
        permission: Some(permission.into()),
        workdir,
        workflow_step: true,
        ..request
    })
}

fn environment(
    env: &[(String, Template)],
    scope: &Scope,
) -> Result<BTreeMap<String, String>, Unbegun> {
    let mut all = BTreeMap::new();
    for (name, template) in env {
        let text = template.render(scope).map_err(value("env"))?;
        if text.contains('\0') {
            let text = format!("the value of {name} holds a NUL, which no variable can hold");
            return Err(Unbegun::Fails("invalid_value", text));
        }
        all.insert(name.clone(), text);
    }
    Ok(all)
}
