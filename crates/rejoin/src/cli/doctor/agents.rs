//! Agents: installed or not, what is known of the binary, whether there is a login.

use std::path::Path;

use rejoin_agents::{Adapter, Facts, ProofRow, compose_env};
use rejoin_core::{Runtime, TotalsScope};
use rejoin_hub::Hub;
use rejoin_runner::{RunnerConfig, doctor_facts};
use serde_json::{Value, json};

use super::permissions;
use super::proof;
use super::report::Report;
use crate::config::Config;
use crate::output::Output;
use rejoin_errors::{CommandError, Result};

pub(super) async fn look(
    report: &mut Report,
    config: &Config,
    runner: &RunnerConfig,
    hub: Option<&Hub>,
    prove: Option<&str>,
    out: Output,
) -> Result<Vec<Value>> {
    report.section("agents");
    if let Some(name) = prove.filter(|n| *n != "all")
        && runner
            .adapter(name)
            .is_none_or(|a| !doctor_facts::provable(a))
    {
        return Err(
            CommandError::not_found(format!("there is no agent `{name}` to prove"))
                .try_this("rejoin doctor --prove"),
        );
    }
    let mut seen = vec![];
    for adapter in runner.adapters() {
        let wanted = prove.is_some_and(|name| name == "all" || name == adapter.name())
            && doctor_facts::provable(adapter);
        let look = Look {
            config,
            runner,
            hub,
            out,
            adapter,
        };
        seen.push(look.one(report, wanted).await);
    }
    let others = config.agents.keys().map(String::as_str);
    for name in others.filter(|n| runner.adapter(n).is_none()) {
        let text = "configured, but neither built in nor described (kind = \"command\")";
        report.note(name, text);
        seen.push(json!({"name": name, "found": false}));
    }
    let default = config.default_agent.as_str();
    if runner.adapter(default).is_none() {
        let text = "the default agent, but rejoin does not know it";
        report.bad(
            default,
            text,
            "rejoin send -a claude, or another default_agent",
        );
    }
    Ok(seen)
}

struct Look<'a> {
    config: &'a Config,
    runner: &'a RunnerConfig,
    hub: Option<&'a Hub>,
    out: Output,
    adapter: &'static dyn Adapter,
}

impl Look<'_> {
    async fn one(&self, report: &mut Report, prove: bool) -> Value {
        let name = self.adapter.name();
        let is_default = self.config.default_agent == name;
        let enabled = !self.config.disabled.iter().any(|d| d == name);
        let mut found = json!({
            "name": name, "default": is_default, "enabled": enabled, "found": true, "path": null,
            "product": null, "version": null, "resume": "unknown", "totals": null, "login": null, "proof": null,
            "permissions": null, "capabilities": self.adapter.capabilities().names(),
        });
        let Some(usual) = self.adapter.profile().program else {
            report.good(name, "built in; answers only where it is asked for by name");
            found["resume"] = "proven".into();
            self.capabilities(report);
            return found;
        };
        if !enabled {
            report.note(name, "switched off in the configuration");
        }
        let Some(path) = doctor_facts::program(self.runner, self.adapter) else {
            found["found"] = false.into();
            found["install"] = self.adapter.profile().install.into();
            let settings = self.runner.agent(name);
            let next = match settings.bin {
                Some(_) => format!("rejoin config show, and correct agents.{name}.bin"),
                None => self.adapter.profile().install.to_owned(),
            };
            let wanted = settings.bin.unwrap_or_else(|| usual.to_owned());
            let text = format!("not installed: `{wanted}` was not found");
            if is_default && enabled {
                report.bad(name, &text, &next);
            } else {
                report.note(name, &format!("{text}; {next}"));
            }
            return found;
        };
        found["path"] = path.to_string_lossy().into();
        let (runtime, facts) = match self.program(&path, prove).await {
            Ok(known) => known,
            Err(failure) => {
                let next = failure
                    .next
                    .unwrap_or_else(|| self.adapter.profile().install.into());
                report.bad(name, &failure.message, &next);
                return found;
            }
        };
        found["product"] = runtime.product.as_str().into();
        found["version"] = runtime.version.0.as_str().into();
        report.good(name, &format!("{runtime}, {}", path.display()));
        self.resume(report, facts.as_ref(), &mut found);
        self.capabilities(report);
        if let Some(facts) = &facts {
            found["proof"] = proof::rows(report, facts);
        }
        found["permissions"] = permissions::table(report, self.adapter, prove);
        found["login"] = self.login(report, is_default && enabled);
        found
    }

    fn capabilities(&self, report: &mut Report) {
        let names = self.adapter.capabilities().names();
        if !names.is_empty() {
            report.note("", &format!("capabilities: {}", names.join(", ")));
        }
    }

    async fn program(&self, path: &Path, prove: bool) -> Result<(Runtime, Option<Facts>)> {
        if prove {
            let name = self.adapter.name();
            self.out
                .note(&format!("proving {name} against the built-in model…"));
            let mut seen = |row: &ProofRow| {
                let word = proof::word(row.state);
                self.out.note(&format!("  {name}: {word}  {}", row.what));
            };
            let adapter = self.adapter;
            let facts =
                doctor_facts::prove_again(self.hub, self.runner, adapter, path, &mut seen).await?;
            return Ok((facts.runtime.clone(), Some(facts)));
        }
        if let Some(hub) = self.hub
            && let Some(facts) = doctor_facts::known(hub, path).await?
        {
            return Ok((facts.runtime.clone(), Some(facts)));
        }
        let runtime = doctor_facts::runtime(self.runner, self.adapter, path).await?;
        Ok((runtime, None))
    }

    fn resume(&self, report: &mut Report, facts: Option<&Facts>, found: &mut Value) {
        let Some(facts) = facts else {
            let text = "resume not tried yet: proven before its first turn, or by --prove";
            report.note("", text);
            return;
        };
        let totals = match facts.totals {
            TotalsScope::PerRun => "its costs are those of one run",
            TotalsScope::Cumulative => {
                "its costs add up over a session; a turn is charged the rest"
            }
            TotalsScope::Unproven => "what its costs cover is not proven, so they are not shown",
        };
        found["totals"] = json!(facts.totals);
        match (&facts.no_resume, facts.proven) {
            (Some(why), _) => {
                found["resume"] = "absent".into();
                let text = format!("cannot resume ({why}): every turn is told what was said");
                report.bad("", &text, self.adapter.profile().install);
            }
            (None, true) => {
                found["resume"] = "proven".into();
                report.good("", &format!("resume proven; {totals}"));
            }
            (None, false) => {
                found["resume"] = "unproven".into();
                report.note("", &format!("resume not proven on this binary; {totals}"));
            }
        }
    }

    /// Names only: no value is read, and no file opened.
    fn login(&self, report: &mut Report, needed: bool) -> Value {
        let Some(login) = &self.adapter.profile().login else {
            return Value::Null;
        };
        let settings = self.runner.agent(self.adapter.name());
        let env = compose_env(
            self.runner.env.clone(),
            &self.adapter.environment(),
            &settings.pass_env,
            &settings.env,
        );
        let var = |name: &str| {
            let set = env.iter().find(|(n, _)| n == name);
            set.map(|(_, v)| v.clone()).filter(|v| !v.is_empty())
        };
        let keys: Vec<&str> = login
            .variables
            .iter()
            .copied()
            .filter(|n| var(n).is_some())
            .collect();
        // Before the first run there is no overlay yet, and a login is the user's own anyway.
        let overlay = self.adapter.capabilities().overlay;
        let own = overlay
            .and_then(|home| home.overlay(&var))
            .map(|overlay| overlay.from);
        let file = own.or_else(|| self.adapter.home(&var));
        let file = file.map(|home| home.join(login.file));
        let file = file.filter(|f| f.is_file());
        let json = json!({"variables": keys, "file": file});
        match (keys.as_slice(), &file) {
            ([], None) if needed && cfg!(target_os = "linux") => {
                report.bad("", "no login found", login.how);
            }
            // Elsewhere logins lie in the system's key store.
            ([], None) => report.note("", "no login found"),
            ([], Some(file)) => report.good("", &format!("login file present: {}", file.display())),
            (keys, _) => report.good("", &format!("key {} set", keys.join(", "))),
        }
        json
    }
}
