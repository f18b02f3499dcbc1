//! Decides between two turns if a process is kept, and if the next turn may use it.

use rejoin_agents::Reading;
use rejoin_core::{ConversationId, Micros, SessionSource, TurnPlan};
use rejoin_hub::{Claimed, PinEnd, Settled, TurnRequest};

use super::launch::{fingerprint, may_stay};
use super::run_link::printed;
use super::{ALIKE, IdleState, WarmProcess, all_resting};
use crate::inspect::Inspection;
use crate::run::Run;
use crate::turn::Runner;

/// Checks that the process knows the whole session that would be resumed, and that a new process
/// would be started in the same way. Otherwise returns the reason.
async fn fits(rest: &IdleState, inspection: &Inspection, alike: &str) -> Result<(), &'static str> {
    let best = inspection
        .outlook
        .best()
        .and_then(|c| c.stored.pin.as_ref());
    let Some(pin) = best.filter(|pin| pin.id == rest.pin) else {
        return Err("it has another session");
    };
    if rest.alike != alike {
        return Err("it was started otherwise");
    }
    let (Some(then), Some(now)) = (&rest.file, pin.files.first()) else {
        return Err("its session has no file");
    };
    if then == now {
        return Ok(());
    }
    // The process adds notes of its own after its answer. It does not know anything else that was
    // added.
    let sessions = inspection.sessions();
    let cursor = rest.cursor.as_deref();
    match sessions.read_async(&now.path, Some(then), cursor).await {
        Ok((
            _,
            Reading {
                entries, prompts, ..
            },
        )) if entries.is_empty() && prompts.is_empty() => Ok(()),
        Ok(_) => Err("more was said in its session"),
        Err(_) => Err("its session cannot be read"),
    }
}

impl Runner {
    /// Takes the resting process that holds the session which this turn would resume. Ends all
    /// other processes of this agent in this conversation. The flag is true if any were ended; then
    /// the facts must be gathered again.
    pub(crate) async fn take_idle(
        &self,
        claimed: &Claimed,
        inspection: &Inspection,
        plan: Option<&TurnPlan>,
    ) -> (Option<(WarmProcess, IdleState)>, bool) {
        let in_place = plan
            .and_then(TurnPlan::session)
            .is_some_and(|session| session.way() == SessionSource::InPlace);
        let wanted = in_place && self.config.warm.is_some() && may_stay(&claimed.request);
        let alike = wanted.then(|| fingerprint(&self.config, inspection, &claimed.request));
        let (mut found, mut ended) = (None, false);
        for host in WarmProcess::of(&self.config.home, claimed.conversation.id) {
            let rest = host.resting();
            let is_others = |rest: &IdleState| rest.agent != claimed.turn.agent;
            if rest.as_ref().is_some_and(is_others) {
                continue;
            }
            let why = match (rest, &alike, &found) {
                (Some(rest), Some(alike), None) => match fits(&rest, inspection, alike).await {
                    Ok(()) if host.take().await => {
                        found = Some((host, rest));
                        continue;
                    }
                    Ok(()) => "it is about to end",
                    Err(why) => why,
                },
                (None, _, _) => "it does not rest",
                (Some(_), None, _) => "its session is not resumed in its place",
                (Some(_), Some(_), Some(_)) => "there is another",
            };
            tracing::debug!(turn = %claimed.turn.id, why, "A process that stayed up is ended");
            host.end().await;
            // Otherwise a process whose folder cannot be removed would be found for ever.
            ended |= !host.folder.exists();
        }
        (found, ended)
    }

    /// Returns true if the next turn would use a resting process.
    pub(crate) async fn would_be_live(
        &self,
        c: ConversationId,
        inspection: &Inspection,
        request: &TurnRequest,
    ) -> bool {
        if self.config.warm.is_none() || !may_stay(request) {
            return false;
        }
        let alike = fingerprint(&self.config, inspection, request);
        for host in WarmProcess::of(&self.config.home, c) {
            if let Some(rest) = host.resting()
                && fits(&rest, inspection, &alike).await.is_ok()
            {
                return true;
            }
        }
        false
    }

    /// Lets the process of a turn rest if its session is confirmed, and ends it otherwise. Must be
    /// called before the end of the turn is committed, so that the process is there for every
    /// observer of that end. If the commit fails, the process holds a session that differs from the
    /// confirmed one and is not used.
    pub(crate) async fn keep_warm(
        &self,
        host: &WarmProcess,
        run: &Run<'_>,
        settled: &Settled,
        total: Option<Micros>,
    ) {
        let alike = fs_err::read_to_string(host.folder.join(ALIKE));
        let alike = alike.ok().filter(|_| !host.is_asked_to_end());
        let kept = match (
            &settled.pin,
            self.config.warm,
            alike.zip(printed(&run.folder)),
        ) {
            (PinEnd::Confirm(pin), Some(_), Some((alike, (_, from)))) => host.keep(&IdleState {
                agent: run.claimed.turn.agent.clone(),
                pin: pin.id,
                file: pin.files.first().cloned(),
                cursor: pin.cursor.clone(),
                alike,
                from,
                total,
                since: self.hub.clock.now(),
            }),
            (_, _, _) => Err(std::io::ErrorKind::Unsupported.into()),
        };
        if kept.is_err() {
            host.end().await;
        }
    }

    /// Ends the processes that have rested longest, if there are too many.
    pub async fn make_room(&self) {
        let most = self.config.warm.map_or(0, |warm| warm.most);
        let resting = all_resting(&self.config.home);
        let too_many = resting.len().saturating_sub(most);
        let too_many = resting.into_iter().take(too_many);
        // Only the caller that marks a process as ending may end it: a turn may have taken it by
        // now.
        end_all(too_many.filter(WarmProcess::is_to_end)).await;
    }

    /// Ends the resting processes of a conversation, so that its next turn starts a new one.
    /// Returns their number. A process that a turn uses now will not rest after it.
    pub async fn reload(&self, c: ConversationId) -> usize {
        let (resting, busy): (Vec<_>, Vec<_>) = WarmProcess::of(&self.config.home, c)
            .into_iter()
            .partition(WarmProcess::is_to_end);
        for host in busy {
            host.ask_to_end();
        }
        end_all(resting).await
    }

    /// Ends all processes of a conversation. No turn of it may be running.
    pub async fn end_processes(&self, c: ConversationId) {
        end_all(WarmProcess::of(&self.config.home, c)).await;
    }

    /// Ends all resting processes. Returns their number.
    pub async fn end_all_idle(&self) -> usize {
        let all = WarmProcess::all(&self.config.home).into_iter();
        end_all(all.filter(WarmProcess::is_to_end)).await
    }

    /// Removes the folders of processes that have ended.
    pub(crate) async fn tidy_warm(&self) {
        for host in WarmProcess::all(&self.config.home) {
            if host.is_gone() && host.is_old() {
                host.end().await;
            }
        }
    }
}

/// Ends the processes in parallel, because each may take its time. Returns their number.
async fn end_all(hosts: impl IntoIterator<Item = WarmProcess>) -> usize {
    let mut ending = tokio::task::JoinSet::new();
    for host in hosts {
        ending.spawn(async move { host.end().await });
    }
    ending.join_all().await.len()
}
