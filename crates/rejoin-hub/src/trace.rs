//! Exports a turn as an OpenTelemetry trace: one span for the turn, one for each tool call. The
//! trace is built from the store when the turn has ended, so it is complete even if the process
//! that began the turn is gone. Without an exporter nothing is read.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanKind, Status, TraceContextExt as _, Tracer as _,
};
use opentelemetry::{Context, KeyValue, global};
use rejoin_core::{Cost, EventBody, Reason, TurnStatus, Verdict};
use rejoin_store::EventRow;

use crate::Hub;
use crate::claim::Claimed;
use crate::error::Result;
use crate::finish::Settled;

/// Number of events to read. Later tool calls get no span.
const EVENTS: i64 = 20_000;

impl Hub {
    /// Exports the trace. Never fails the turn: parts that cannot be read are left out.
    pub(crate) async fn trace(
        &self,
        claimed: &Claimed,
        settled: &Settled,
        verdict: Option<Verdict>,
        reason: Option<Reason>,
        now: i64,
    ) {
        let turn = &claimed.turn;
        let tracer = global::tracer("rejoin");
        let parent = claimed.request.traceparent.as_deref().map(parent);
        let (agent, began) = (&turn.agent, turn.started_at.unwrap_or(turn.created_at));
        let mut builder = SpanBuilder::from_name(format!("invoke_agent {agent}"))
            .with_kind(SpanKind::Internal)
            .with_start_time(at(began));
        builder.attributes = Some(attributes(claimed, settled, verdict, reason));
        let context = parent.unwrap_or_default();
        let mut span = tracer.build_with_context(builder, &context);
        if !span.is_recording() {
            return;
        }
        match &settled.error {
            Some(failure) => span.set_status(Status::error(failure.class.to_string())),
            None if settled.status == TurnStatus::Succeeded => span.set_status(Status::Ok),
            None => {}
        }
        let context = context.with_span(span);
        for tool in self.tools_of(claimed).await.unwrap_or_default() {
            let builder = SpanBuilder::from_name(format!("execute_tool {}", tool.name))
                .with_kind(SpanKind::Internal)
                .with_start_time(at(tool.began))
                .with_attributes([
                    KeyValue::new("gen_ai.operation.name", "execute_tool"),
                    KeyValue::new("gen_ai.tool.name", tool.name),
                    KeyValue::new("gen_ai.tool.call.id", tool.id),
                ]);
            let mut span = tracer.build_with_context(builder, &context);
            if tool.failed {
                span.set_status(Status::error("the tool failed"));
            }
            span.end_with_timestamp(at(tool.ended.unwrap_or(now)));
        }
        context.span().end_with_timestamp(at(now));
    }

    async fn tools_of(&self, claimed: &Claimed) -> Result<Vec<Tool>> {
        let mut read = self.store.read().await?;
        let events = read.events().of_turn(claimed.turn.id, 0, EVENTS).await?;
        Ok(tools(events))
    }
}

struct Tool {
    id: String,
    name: String,
    began: i64,
    ended: Option<i64>,
    failed: bool,
}

/// Pairs tool calls with their results, in order.
fn tools(events: Vec<EventRow>) -> Vec<Tool> {
    let (mut called, mut by_id) = (Vec::<Tool>::new(), BTreeMap::new());
    for event in events {
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "only tools take time of their own"
        )]
        match event.body {
            EventBody::ToolCall { id, tool, .. } => {
                by_id.insert(id.clone(), called.len());
                called.push(Tool {
                    id,
                    name: tool,
                    began: event.at,
                    ended: None,
                    failed: false,
                });
            }
            EventBody::ToolResult { id, is_error, .. } => {
                if let Some(tool) = by_id.get(&id).and_then(|&n| called.get_mut(n)) {
                    tool.ended = Some(event.at);
                    tool.failed = is_error;
                }
            }
            _ => {}
        }
    }
    called
}

/// Builds the attributes, with the OpenTelemetry names for generative AI and our own for the rest.
fn attributes(
    claimed: &Claimed,
    settled: &Settled,
    verdict: Option<Verdict>,
    reason: Option<Reason>,
) -> Vec<KeyValue> {
    let turn = &claimed.turn;
    let mut all = vec![
        KeyValue::new("gen_ai.operation.name", "invoke_agent"),
        KeyValue::new("gen_ai.agent.name", turn.agent.to_string()),
        KeyValue::new("gen_ai.conversation.id", turn.conversation.to_string()),
        KeyValue::new("rejoin.turn.id", turn.id.to_string()),
        KeyValue::new("rejoin.status", settled.status.to_string()),
    ];
    let mut add = |name: &'static str, value: Option<String>| {
        all.extend(value.map(|value| KeyValue::new(name, value)));
    };
    add("gen_ai.request.model", claimed.request.model.clone());
    add("gen_ai.response.model", settled.model.clone());
    add("rejoin.verdict", verdict.map(|v| v.to_string()));
    add("rejoin.reason", reason.map(|r| r.to_string()));
    add("rejoin.session.id", settled.record.session_id.clone());
    let class = settled.error.as_ref().map(|e| e.class.to_string());
    add("error.type", class);
    if let Some(usage) = settled.usage {
        let figures = [
            (
                "gen_ai.usage.input_tokens",
                usage.input + usage.cache_read + usage.cache_write,
            ),
            ("gen_ai.usage.output_tokens", usage.output),
            ("gen_ai.usage.cache_read.input_tokens", usage.cache_read),
            (
                "gen_ai.usage.cache_creation.input_tokens",
                usage.cache_write,
            ),
        ];
        let figures =
            figures.map(|(name, n)| KeyValue::new(name, i64::try_from(n).unwrap_or(i64::MAX)));
        all.extend(figures);
    }
    if let Cost::Known(cost) = settled.cost {
        all.push(KeyValue::new("rejoin.cost_usd", cost.dollars()));
    }
    all
}

/// Reads the parent context (W3C Trace Context).
fn parent(traceparent: &str) -> Context {
    let headers = HashMap::from([("traceparent".to_owned(), traceparent.to_owned())]);
    global::get_text_map_propagator(|propagator| propagator.extract(&headers))
}

fn at(micros: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(micros.unsigned_abs())
}
