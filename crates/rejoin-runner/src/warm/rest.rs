//! Between two turns: whether a process is kept, and whether the next turn is its.

use std::path::Path;

use rejoin_agents::Reading;
use rejoin_core::{ConversationId, Micros, TurnPlan, Way};
use rejoin_hub::{Claimed, PinEnd, Settled, TurnRequest};

use super::launch::may_stay;
use super::through::printed;
use super::{ALIKE, Host, Rest, alike, all_resting};
use crate::look::Looked;
use crate::turn::Runner;

/// It holds what the session holds that would be resumed, and was started as one would be now. Else:
/// what is against it.
async fn fits(rest: &Rest, looked: &Looked, alike: &str) -> Result<(), &'static str> {
    let best = looked.outlook.best().and_then(|c| c.stored.pin.as_ref());
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
    // It adds notes of its own later than its answer. Whatever else was added, it does not know.
    let sessions = looked.sessions();
    let cursor = rest.cursor.as_deref();
    match sessions.read_apart(&now.path, Some(then), cursor).await {
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
    /// The process that rests with the session this turn would resume, taken for it. All others of this
    /// agent in this conversation are ended: true if there were any, and it is to be looked again.
    pub(crate) async fn take_resting(
        &self,
        claimed: &Claimed,
        looked: &Looked,
        plan: Option<&TurnPlan>,
    ) -> (Option<(Host, Rest)>, bool) {
        let in_place = plan
            .and_then(TurnPlan::session)
            .is_some_and(|session| session.way() == Way::InPlace);
        let wanted = in_place && self.config.warm.is_some() && may_stay(&claimed.request);
        let alike = wanted.then(|| alike(&self.config, looked, &claimed.request));
        let (mut found, mut ended) = (None, false);
        for host in Host::of(&self.config.home, claimed.conversation.id) {
            let rest = host.resting();
            let is_others = |rest: &Rest| rest.agent != claimed.turn.agent;
            if rest.as_ref().is_some_and(is_others) {
                continue;
            }
            let why = match (rest, &alike, &found) {
                (Some(rest), Some(alike), None) => match fits(&rest, looked, alike).await {
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
            // One whose folder cannot be removed would be found for ever.
            ended |= !host.folder.exists();
        }
        (found, ended)
    }

    /// Would the next turn be told to a process that rests?
    pub(crate) async fn would_be_live(
        &self,
        c: ConversationId,
        looked: &Looked,
        request: &TurnRequest,
    ) -> bool {
        if self.config.warm.is_none() || !may_stay(request) {
            return false;
        }
        let alike = alike(&self.config, looked, request);
        for host in Host::of(&self.config.home, c) {
            if let Some(rest) = host.resting()
                && fits(&rest, looked, &alike).await.is_ok()
            {
                return true;
            }
        }
        false
    }

    /// Lets the process of a turn rest, if its session is confirmed. To be called before that is
    /// committed: whoever knows of the end of the turn finds it. If it is not committed, the process has
    /// another session than is known, and is not used.
    pub(crate) async fn keep_warm(
        &self,
        host: &Host,
        run: &Path,
        claimed: &Claimed,
        settled: &Settled,
        total: Option<Micros>,
    ) {
        let alike = fs_err::read_to_string(host.folder.join(ALIKE));
        let alike = alike.ok().filter(|_| !host.is_asked_to_end());
        let kept = match (&settled.pin, self.config.warm, alike.zip(printed(run))) {
            (PinEnd::Confirm(pin), Some(_), Some((alike, (_, from)))) => host.keep(&Rest {
                agent: claimed.turn.agent.clone(),
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

    /// Ends those that have rested longest, if there are too many.
    pub async fn make_room(&self) {
        let most = self.config.warm.map_or(0, |warm| warm.most);
        let resting = all_resting(&self.config.home);
        let too_many = resting.len().saturating_sub(most);
        let too_many = resting.into_iter().take(too_many);
        // Only who gets hold of it may end it: a turn may have it by now.
        end_all(too_many.filter(Host::is_to_end)).await;
    }

    /// Ends what rests of a conversation: its next turn starts a process. How many there were. One that a
    /// turn has does not rest after it.
    pub async fn reload(&self, c: ConversationId) -> usize {
        let (resting, busy): (Vec<_>, Vec<_>) = Host::of(&self.config.home, c)
            .into_iter()
            .partition(Host::is_to_end);
        for host in busy {
            host.ask_to_end();
        }
        end_all(resting).await
    }

    /// Ends all processes of a conversation for which no turn runs.
    pub async fn end_processes(&self, c: ConversationId) {
        end_all(Host::of(&self.config.home, c)).await;
    }

    /// Ends everything that rests.
    pub async fn cool_down(&self) -> usize {
        let all = Host::all(&self.config.home).into_iter();
        end_all(all.filter(Host::is_to_end)).await
    }

    /// Removes what is left of processes that have ended.
    pub(crate) async fn tidy_warm(&self) {
        for host in Host::all(&self.config.home) {
            if host.is_gone() && host.is_old() {
                host.end().await;
            }
        }
    }
}

/// All at once: each may take its time.
async fn end_all(hosts: impl IntoIterator<Item = Host>) -> usize {
    let mut ending = tokio::task::JoinSet::new();
    for host in hosts {
        ending.spawn(async move { host.end().await });
    }
    ending.join_all().await.len()
}
