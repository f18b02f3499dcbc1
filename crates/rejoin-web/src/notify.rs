//! Sends notifications to users who are not watching: a signed request, or a command.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rejoin_hub::{Hub, Notification, NotifyRules};
use rejoin_runner::process::capture;
use rejoin_store::Delivery;
use ring::hmac;

use crate::address;

/// Time within which events of other processes are seen.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// Time within which a receiver must answer.
const HEARD_WITHIN: Duration = Duration::from_secs(15);
const RUNS_WITHIN: Duration = Duration::from_secs(30);

/// Targets and events of notifications.
#[derive(Debug, Clone, Default)]
pub struct Notify {
    pub on: Vec<String>,
    pub done_after: Duration,
    pub webhook: Option<String>,
    /// Secret that signs requests.
    pub secret: Option<String>,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Prefixes of URLs that a message may name.
    pub urls: Vec<String>,
}

impl Notify {
    /// Returns true if a message may name this URL: it is at or below one of the configured ones.
    pub(crate) fn allows(&self, url: &str) -> bool {
        let plain = !url.chars().any(|c| c.is_control() || c.is_whitespace());
        let below = |known: &String| address::is_below(url, known);
        plain && url.len() < 2000 && self.urls.iter().any(below)
    }

    /// Returns the first configured URL that is not an HTTP URL.
    pub fn bad_address(&self) -> Option<&str> {
        let mut all = self.webhook.iter().chain(&self.urls);
        let bad = all.find(|url| address::web(url).is_none());
        bad.map(String::as_str)
    }

    fn wish(&self) -> NotifyRules {
        let targets = [
            self.webhook.as_ref().map(|_| "webhook".to_owned()),
            (!self.command.is_empty()).then(|| "command".to_owned()),
        ];
        NotifyRules {
            on: self.on.clone(),
            done_after: self.done_after.as_micros() as i64,
            targets: targets.into_iter().flatten().collect(),
        }
    }

    /// Returns true if there is no target.
    pub(crate) fn is_nobody(&self) -> bool {
        self.webhook.is_none() && self.command.is_empty() && self.urls.is_empty()
    }

    /// Sends notifications for ever. Failed ones are sent later, by any process that handles
    /// deliveries.
    pub(crate) async fn go_on(self, hub: Hub, env: Vec<(String, String)>, home: PathBuf) {
        if self.is_nobody() {
            return std::future::pending().await;
        }
        let wish = self.wish();
        // The store or other code may have installed a provider already.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = reqwest::Client::builder()
            .timeout(HEARD_WITHIN)
            .redirect(reqwest::redirect::Policy::none())
            .build();
        let Ok(client) = client else {
            return;
        };
        let teller = Teller {
            notify: self,
            client,
            env,
            home,
        };
        loop {
            while matches!(hub.find_notifications(&wish).await, Ok(true)) {}
            while let Ok(Some((delivery, notification))) = hub.take_delivery().await {
                let outcome = teller.tell(&hub, &delivery, &notification).await;
                drop(hub.delivered(&delivery, outcome).await);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

struct Teller {
    notify: Notify,
    client: reqwest::Client,
    env: Vec<(String, String)>,
    home: PathBuf,
}

impl Teller {
    async fn tell(
        &self,
        hub: &Hub,
        delivery: &Delivery,
        notification: &Notification,
    ) -> Result<(), String> {
        let body = serde_json::to_string(notification).map_err(|e| e.to_string())?;
        match (delivery.target.as_str(), &self.notify.webhook) {
            ("command", _) => self.run(notification, body).await,
            ("webhook", Some(url)) => self.send(hub, url, notification, body).await,
            ("webhook", None) => Err("no webhook is configured any more".into()),
            (url, _) => self.send(hub, url, notification, body).await,
        }
    }

    /// Sends a request, signed according to Standard Webhooks: the receiver can verify its origin
    /// and its time.
    async fn send(
        &self,
        hub: &Hub,
        url: &str,
        notification: &Notification,
        body: String,
    ) -> Result<(), String> {
        let at = (hub.clock.now() / 1_000_000).to_string();
        let mut request = self
            .client
            .post(url)
            .header("content-type", "application/json")
            .header("user-agent", concat!("rejoin/", env!("CARGO_PKG_VERSION")))
            .header("webhook-id", &notification.id)
            .header("webhook-timestamp", &at);
        if let Some(secret) = &self.notify.secret {
            let signed = format!("{}.{at}.{body}", notification.id);
            request = request.header("webhook-signature", signature(secret, &signed));
        }
        let answer = request.body(body).send().await;
        // The error text may contain the URL, and the URL a secret.
        let answer = answer.map_err(|e| e.without_url().to_string())?;
        if answer.status().is_success() {
            return Ok(());
        }
        Err(format!("answered {}", answer.status()))
    }

    /// Runs the command with the notification on its stdin.
    async fn run(&self, notification: &Notification, body: String) -> Result<(), String> {
        let words = self.notify.command.clone();
        let Some(program) = words.first().cloned() else {
            return Err("no command is configured any more".into());
        };
        let own = [
            ("REJOIN_NOTIFY_TYPE", notification.kind.clone()),
            ("REJOIN_NOTIFY_SUMMARY", notification.turn.summary.clone()),
            ("REJOIN_NOTIFY_TURN", notification.turn.turn_id.to_string()),
        ];
        let env: Vec<(OsString, OsString)> = self
            .env
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .chain(own.map(|(name, value)| (name.into(), value.into())))
            .collect();
        let home = self.home.clone();
        let ran = tokio::task::spawn_blocking(move || {
            let args: Vec<&String> = words.iter().skip(1).collect();
            capture(
                program.as_ref(),
                args,
                env,
                &home,
                body.as_bytes(),
                RUNS_WITHIN,
                None,
            )
        });
        let ran = ran.await.map_err(|e| e.to_string())?;
        let ran = ran.map_err(|e| e.to_string())?;
        match ran.status.code() {
            _ if ran.timed_out => Err("did not end in time".into()),
            Some(0) => Ok(()),
            Some(code) => Err(format!("ended with {code}")),
            None => Err("was killed".into()),
        }
    }
}

fn signature(secret: &str, text: &str) -> String {
    let encoded = secret.strip_prefix("whsec_");
    let key = encoded.and_then(|text| STANDARD.decode(text).ok());
    let key = key.unwrap_or_else(|| secret.as_bytes().to_vec());
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let tag = hmac::sign(&key, text.as_bytes());
    format!("v1,{}", STANDARD.encode(tag.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Example of the Standard Webhooks libraries.
    #[test]
    fn signed_as_others_check_it() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let text = "msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{\"test\": 2432232314}";
        assert_eq!(
            signature(secret, text),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }

    #[test]
    fn only_addresses_that_are_listed() {
        let notify = Notify {
            urls: vec!["https://hooks.example.org/".into()],
            ..Notify::default()
        };
        assert!(notify.allows("https://hooks.example.org/a?b=c"));
        for url in [
            "https://hooks.example.org.evil.example/",
            "http://hooks.example.org/",
            "https://hooks.example.org/a\r\nX: y",
            "file:///etc/passwd",
        ] {
            assert!(!notify.allows(url), "{url}");
        }
        assert!(!Notify::default().allows("https://hooks.example.org/"));
    }
}
