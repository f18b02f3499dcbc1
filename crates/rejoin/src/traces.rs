//! Traces of turns, if the environment says where to send them (`OTEL_*`).

use std::time::Duration;

use opentelemetry::{KeyValue, global};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use rejoin_hub::TurnRequest;

const KNOWN: [&str; 2] = ["http/protobuf", "http/json"];

/// Time that a collector has to receive the last spans when a command ends.
const LAST_MOMENTS: Duration = Duration::from_secs(3);

pub(crate) struct Traces(SdkTracerProvider);

impl Traces {
    /// Starts to export spans. None: no collector is configured. The error is a sentence.
    pub(crate) fn by_environment() -> Option<Result<Self, String>> {
        wanted(&|name| std::env::var(name).ok()).then(Self::begin)
    }

    fn begin() -> Result<Self, String> {
        // The store and others may choose it as well.
        drop(rustls::crypto::ring::default_provider().install_default());
        if let Some(why) = misled(&|name| std::env::var(name).ok()) {
            return Err(why);
        }
        let exporter = SpanExporter::builder().build();
        let exporter = exporter.map_err(|e| format!("no traces are sent: {e}"))?;
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let mut resource = Resource::builder().with_attribute(version);
        let named = |name: &str| std::env::var(name).unwrap_or_default();
        let is_named = !named("OTEL_SERVICE_NAME").is_empty()
            || named("OTEL_RESOURCE_ATTRIBUTES").contains("service.name=");
        if !is_named {
            resource = resource.with_service_name("rejoin");
        }
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource.build())
            .build();
        global::set_text_map_propagator(TraceContextPropagator::new());
        global::set_tracer_provider(provider.clone());
        Ok(Self(provider))
    }

    /// Sends what is left.
    pub(crate) fn end(self) {
        drop(self.0.shutdown_with_timeout(LAST_MOMENTS));
    }
}

/// The trace context of this command, for the turns that it sends.
pub(crate) fn parent() -> Option<String> {
    TurnRequest::well_formed_trace(&std::env::var("TRACEPARENT").ok()?)
}

/// Describes settings that the exporter would ignore without a message.
fn misled(var: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    for of_traces in ["TRACES_", ""] {
        let name = format!("OTEL_EXPORTER_OTLP_{of_traces}ENDPOINT");
        let is_address = |url: &String| reqwest::Url::parse(url).is_ok_and(|url| url.has_host());
        if let Some(url) = var(&name).filter(|url| !url.is_empty() && !is_address(url)) {
            return Some(format!("no traces are sent: {name} is `{url}`, no address"));
        }
        let name = format!("OTEL_EXPORTER_OTLP_{of_traces}PROTOCOL");
        if let Some(protocol) = var(&name).filter(|it| !it.is_empty() && !KNOWN.contains(&&**it)) {
            let known = KNOWN.join(" and ");
            return Some(format!(
                "no traces are sent: {name} is `{protocol}`, and only {known} are known here"
            ));
        }
    }
    None
}

/// Off, unless somebody says where to.
fn wanted(var: &dyn Fn(&str) -> Option<String>) -> bool {
    let set = |name: &str| var(name).filter(|value| !value.is_empty());
    let off = set("OTEL_SDK_DISABLED").is_some_and(|off| off.eq_ignore_ascii_case("true"));
    let somewhere = set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
        .or_else(|| set("OTEL_EXPORTER_OTLP_ENDPOINT"))
        .is_some();
    match set("OTEL_TRACES_EXPORTER") {
        _ if off => false,
        Some(which) => which == "otlp",
        None => somewhere,
    }
}

#[cfg(test)]
mod tests {
    use super::{misled, wanted};

    const TO: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");

    #[test]
    fn off_unless_somebody_says_where_to() {
        let with = |vars: &'static [(&str, &str)]| {
            wanted(&|name| {
                let found = vars.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(!with(&[]));
        assert!(!with(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")]));
        assert!(with(&[("OTEL_TRACES_EXPORTER", "otlp")]));
        assert!(with(&[TO]));
        assert!(!with(&[TO, ("OTEL_TRACES_EXPORTER", "none")]));
        assert!(!with(&[TO, ("OTEL_SDK_DISABLED", "TRUE")]));
    }

    #[test]
    fn what_cannot_be_meant_is_said() {
        let said = |name: &'static str, value: &'static str| {
            misled(&|asked| (asked == name).then(|| value.to_owned())).unwrap_or_default()
        };
        assert_eq!(said(TO.0, TO.1), "");
        assert!(said(TO.0, "garbage").contains("no address"));
        let protocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL";
        assert_eq!(said(protocol, "http/json"), "");
        assert!(said(protocol, "grpc").contains("http/protobuf and http/json"));
    }
}
