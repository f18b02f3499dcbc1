//! What is worth telling somebody who is not watching: found among the events, once each.

use rejoin_core::EventBody;
use rejoin_store::{Delivery, EventRow, NewDelivery, Read, StoredTurn, Tried};
use serde::Serialize;
use uuid::Uuid;

use crate::clock::rfc3339;
use crate::error::Result;
use crate::finish::took_ms;
use crate::request::TurnRequest;
use crate::{Hub, TurnView};

const WATERMARK: &str = "notify";
const PAGE: i64 = 500;
/// A try that nobody finished is made again after this.
const IN_HAND: i64 = 60_000_000;
/// Waits between tries, in microseconds.
const WAITS: [i64; 6] = [
    1_000_000,
    5_000_000,
    30_000_000,
    120_000_000,
    600_000_000,
    3_600_000_000,
];

/// What one wants to hear of.
#[derive(Debug, Clone, Default)]
pub struct NotifyWish {
    /// `waiting`, `failed`, `reseeded`, `succeeded`, `cancelled`, `lost`, `done`.
    pub on: Vec<String>,
    /// `done`: it has succeeded, and taken so long.
    pub done_after: i64,
    /// `webhook`, `command`.
    pub targets: Vec<String>,
}

/// A line of the log of deliveries.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DeliveryView {
    pub id: String,
    pub turn_id: String,
    pub kind: String,
    pub target: String,
    /// `pending`, `sent` or `failed`.
    pub state: String,
    pub tries: i64,
    pub error: Option<String>,
    pub created_at: String,
    pub sent_at: Option<String>,
}

/// What is told.
#[derive(Debug, Clone, Serialize)]
pub struct Notification {
    pub id: String,
    /// `turn.waiting`, `turn.failed`, …
    #[serde(rename = "type")]
    pub kind: String,
    pub at: String,
    pub turn: TurnView,
}

impl Hub {
    /// From here on somebody wants to hear of things; what was before is not news.
    /// To be called before the first thing can happen that is to be told.
    pub async fn notify_from_now(&self) -> Result<()> {
        let mut read = self.store.read().await?;
        if read.watermark(WATERMARK).await?.is_some() {
            return Ok(());
        }
        let newest = read.last_event().await?;
        drop(read);
        let mut tx = self.store.begin().await?;
        // Nothing is moved where somebody else was faster.
        tx.move_on(WATERMARK, None, newest).await?;
        Ok(tx.commit().await?)
    }

    /// Looks at what happened since the last time, and keeps what is to be told. True: there is more.
    pub async fn find_notifications(&self, wish: &NotifyWish) -> Result<bool> {
        let mut read = self.store.read().await?;
        let Some(from) = read.watermark(WATERMARK).await? else {
            return Ok(false);
        };
        let page = read.events_after(from, PAGE).await?;
        let Some(last) = page.last().map(|row| row.seq) else {
            return Ok(false);
        };
        let mut found = vec![];
        for row in &page {
            if let Some(kind) = kind_of(&row.body) {
                found.extend(worth(&mut read, wish, row, kind).await?);
            }
        }
        drop(read);
        let mut tx = self.store.begin().await?;
        // Somebody else who does the same was faster.
        if !tx.move_on(WATERMARK, Some(from), last).await? {
            return Ok(true);
        }
        let now = self.clock.now();
        for (turn, kind, target) in &found {
            let id = self.clock.turn_id()?.uuid();
            tx.add_delivery(&NewDelivery {
                id,
                turn: *turn,
                kind,
                target,
                now,
            })
            .await?;
        }
        tx.commit().await?;
        Ok(page.len() as i64 == PAGE)
    }

    /// The next notification that is to be told now, in hand.
    pub async fn take_delivery(&self) -> Result<Option<(Delivery, Notification)>> {
        let now = self.clock.now();
        let due = self.store.read().await?.deliveries_due(now, 1).await?;
        let Some(delivery) = due.into_iter().next() else {
            return Ok(None);
        };
        let mut tx = self.store.begin().await?;
        if !tx
            .try_delivery(delivery.id, delivery.tries, now + IN_HAND)
            .await?
        {
            return Ok(None);
        }
        tx.commit().await?;
        let notification = Notification {
            id: delivery.id.to_string(),
            kind: format!("turn.{}", delivery.kind),
            at: rfc3339(delivery.created_at),
            turn: self.turn_view(delivery.turn).await?,
        };
        Ok(Some((delivery, notification)))
    }

    /// How it went; what did not work is tried again, some times.
    pub async fn delivered(&self, delivery: &Delivery, outcome: Result<(), String>) -> Result<()> {
        let now = self.clock.now();
        let wait = usize::try_from(delivery.tries)
            .ok()
            .and_then(|n| WAITS.get(n));
        let tried = match (&outcome, wait) {
            (Ok(()), _) => Tried::Sent,
            (Err(why), Some(wait)) => Tried::Later(now + wait, why),
            (Err(why), None) => Tried::Failed(why),
        };
        let mut tx = self.store.begin().await?;
        tx.delivery_tried(delivery.id, &tried, now).await?;
        Ok(tx.commit().await?)
    }

    pub async fn delivery_views(&self, limit: i64) -> Result<Vec<DeliveryView>> {
        let mut read = self.store.read().await?;
        let found = read
            .deliveries(&self.namespace, limit.clamp(1, 1000))
            .await?;
        Ok(found.into_iter().map(view).collect())
    }
}

fn view(delivery: Delivery) -> DeliveryView {
    let text = |id: Uuid| id.hyphenated().to_string();
    DeliveryView {
        id: text(delivery.id),
        turn_id: delivery.turn.to_string(),
        kind: delivery.kind,
        target: delivery.target,
        state: delivery.state,
        tries: delivery.tries,
        error: delivery.error,
        created_at: rfc3339(delivery.created_at),
        sent_at: delivery.sent_at.map(rfc3339),
    }
}

/// What an event may be worth telling as.
fn kind_of(body: &EventBody) -> Option<String> {
    match body {
        EventBody::Question { .. } | EventBody::Approval { .. } => Some("waiting".into()),
        EventBody::TurnEnded { status, .. } => Some(status.clone()),
        EventBody::TurnDecided {
            verdict, reason, ..
        } if verdict == "reseeded" && reason.as_deref() != Some("first_turn") => {
            Some("reseeded".into())
        }
        EventBody::TurnAccepted { .. }
        | EventBody::TurnDecided { .. }
        | EventBody::TurnStarted { .. }
        | EventBody::TextDelta { .. }
        | EventBody::Text { .. }
        | EventBody::Thinking { .. }
        | EventBody::ToolCall { .. }
        | EventBody::ToolResult { .. }
        | EventBody::FileChanged { .. }
        | EventBody::Answered { .. }
        | EventBody::Todo { .. }
        | EventBody::Usage { .. }
        | EventBody::Compacted { .. }
        | EventBody::Notice { .. }
        | EventBody::HistoryChanged { .. }
        | EventBody::Raw { .. } => None,
    }
}

/// Whom it is told, and as what.
async fn worth(
    read: &mut Read,
    wish: &NotifyWish,
    row: &EventRow,
    kind: String,
) -> Result<Vec<(rejoin_core::TurnId, String, String)>> {
    let Some(turn) = read.turn(row.turn).await? else {
        return Ok(vec![]);
    };
    // What nobody waits for is denied at once, and says so itself.
    let asked_in_vain = kind == "waiting" && read.questions(turn.id).await?.is_empty();
    if asked_in_vain {
        return Ok(vec![]);
    }
    let wanted = |kind: &str| wish.on.iter().any(|on| on == kind);
    let mut found = vec![];
    let told_as = if wanted(&kind) {
        Some(kind.clone())
    } else if kind == "succeeded" && wanted("done") && took(&turn) >= wish.done_after {
        Some("done".to_owned())
    } else {
        None
    };
    if let Some(told_as) = told_as {
        found.extend(
            wish.targets
                .iter()
                .map(|to| (turn.id, told_as.clone(), to.clone())),
        );
    }
    let request: Option<TurnRequest> = serde_json::from_value(turn.request.clone()).ok();
    if let Some(url) = request.and_then(|request| request.notify_url) {
        found.push((turn.id, kind, url));
    }
    Ok(found)
}

/// Returns how long a turn took, in microseconds.
fn took(turn: &StoredTurn) -> i64 {
    i64::try_from(took_ms(turn).saturating_mul(1000)).unwrap_or(i64::MAX)
}
