//! Tells those who are not watching: a signed request, or a program that is run.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rejoin_hub::{Hub, Notification, NotifyWish};
use rejoin_runner::process::capture;
use rejoin_store::Delivery;
use ring::hmac;

use crate::address;

/// Events of other processes are heard of within this time.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// Who is told must say that they have heard within this time.
const HEARD_WITHIN: Duration = Duration::from_secs(15);
const RUNS_WITHIN: Duration = Duration::from_secs(30);

/// Whom to tell, and of what.
#[derive(Debug, Clone, Default)]
pub struct Notify {
    pub on: Vec<String>,
    pub done_after: Duration,
    pub webhook: Option<String>,
    /// Requests are signed with it.
    pub secret: Option<String>,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Beginnings of addresses that may come with a message.
    pub urls: Vec<String>,
}

impl Notify {
    /// True if a message may name this address: it lies at or below one of the configured ones.
    pub(crate) fn allows(&self, url: &str) -> bool {
        let plain = !url.chars().any(|c| c.is_control() || c.is_whitespace());
        let below = |known: &String| address::is_below(url, known);
        plain && url.len() < 2000 && self.urls.iter().any(below)
    }

    /// The first configured address that is not one of the web.
    pub fn bad_address(&self) -> Option<&str> {
        let mut all = self.webhook.iter().chain(&self.urls);
        let bad = all.find(|url| address::web(url).is_none());
        bad.map(String::as_str)
    }

    fn wish(&self) -> NotifyWish {
        let targets = [
            self.webhook.as_ref().map(|_| "webhook".to_owned()),
            (!self.command.is_empty()).then(|| "command".to_owned()),
        ];
        NotifyWish {
            on: self.on.clone(),
            done_after: self.done_after.as_micros() as i64,
            targets: targets.into_iter().flatten().collect(),
        }
    }

    /// Nobody wants to hear anything.
    pub(crate) fn is_nobody(&self) -> bool {
        self.webhook.is_none() && self.command.is_empty() && self.urls.is_empty()
    }

    /// For ever. What cannot be told now is told later, by whoever looks next.
    pub(crate) async fn go_on(self, hub: Hub, env: Vec<(String, String)>, home: PathBuf) {
        if self.is_nobody() {
            return std::future::pending().await;
        }
        let wish = self.wish();
        // The store and others may have chosen it already.
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

    /// Signed as Standard Webhooks has it: who has the secret knows that it comes from here, and when.
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
        // Its words may hold the address, and that a secret.
        let answer = answer.map_err(|e| e.without_url().to_string())?;
        if answer.status().is_success() {
            return Ok(());
        }
        Err(format!("answered {}", answer.status()))
    }

    /// With what happened on its stdin.
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

    /// The example of the Standard Webhooks libraries.
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
