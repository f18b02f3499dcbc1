//! Runs of workflows, and their steps.

use rejoin_core::{ConversationId, TurnId, WorkflowId};

use crate::connections::Tx;
use crate::db::{Ask, Row, one, rows, topic, vals};
use crate::error::{Error, Result};

/// Item of a step that does not run once per item.
const NO_ITEM: i64 = -1;

/// A run to be stored.
#[derive(Debug, Clone, Copy)]
pub struct NewWorkflow<'a> {
    pub id: WorkflowId,
    pub namespace: &'a str,
    pub key: Option<&'a str>,
    pub name: &'a str,
    /// Text of the file.
    pub file: &'a str,
    /// Texts of the files that the file names, as JSON.
    pub prompts: &'a str,
    /// Values of the inputs, as JSON.
    pub inputs: &'a str,
    /// Options of the run, as JSON.
    pub options: &'a str,
    pub now: i64,
}

/// A stored run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredWorkflow {
    pub id: WorkflowId,
    pub namespace: String,
    pub key: Option<String>,
    pub name: String,
    pub file: String,
    pub prompts: String,
    pub inputs: String,
    pub options: String,
    pub status: String,
    /// True if somebody asked to cancel it.
    pub cancel: bool,
    /// Number of changes so far: of the run and of its steps.
    pub changes: i64,
    /// Process that runs it.
    pub holder: Option<String>,
    pub lease_until: Option<i64>,
    pub error: Option<String>,
    pub started_at: i64,
    pub ended_at: Option<i64>,
}

/// A step of a run, or one item of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredStep {
    /// Number of the step in its file.
    pub n: i64,
    /// Number of the item. None for a step that does not run once per item, and for the step itself.
    pub item: Option<i64>,
    pub id: String,
    /// `agent`, `run` or `approve`.
    pub kind: String,
    pub status: String,
    pub attempts: i64,
    pub conversation: Option<ConversationId>,
    pub turn: Option<TurnId>,
    /// Everything else about it, as JSON.
    pub state: String,
    pub started_at: Option<i64>,
    pub ended_at: Option<i64>,
}

/// New state of a run.
#[derive(Debug, Clone, Copy)]
pub struct WorkflowChange<'a> {
    pub status: &'a str,
    pub error: Option<&'a str>,
    pub ended_at: Option<i64>,
}

topic! {
    /// Runs of workflows, and their steps.
    Workflows, workflows
}

impl Workflows<'_, Tx> {
    /// Stores a run, which `running` nobody holds yet.
    pub async fn add(&mut self, new: &NewWorkflow<'_>) -> Result<()> {
        let sql = "insert into workflows
            (id, namespace, key, name, file, prompts, inputs, options, status, started_at)
            values ($1, $2, $3, $4, $5, $6, $7, $8, 'running', $9)";
        let values = vals![
            new.id.uuid(),
            new.namespace,
            new.key,
            new.name,
            new.file,
            new.prompts,
            new.inputs,
            new.options,
            new.now,
        ];
        self.0.run(sql, values).await?;
        Ok(())
    }

    /// Takes a run from the holder that was read before. Fails if another process was first.
    pub async fn take(
        &mut self,
        id: WorkflowId,
        before: Option<&str>,
        holder: &str,
        until: Option<i64>,
    ) -> Result<()> {
        let sql = "update workflows set holder = $3, lease_until = $4
            where id = $1 and coalesce(holder, '') = coalesce($2, '')";
        let lost = "another process runs the workflow";
        let values = vals![id.uuid(), before, holder, until];
        self.0.must(sql, values, lost).await
    }

    /// Extends the hold on a run. Returns false if another process has it.
    pub async fn renew(
        &mut self,
        id: WorkflowId,
        holder: &str,
        until: Option<i64>,
    ) -> Result<bool> {
        let sql = "update workflows set lease_until = $3 where id = $1 and holder = $2";
        Ok(self.0.run(sql, vals![id.uuid(), holder, until]).await? > 0)
    }

    /// Lets go of a run.
    pub async fn let_go(&mut self, id: WorkflowId, holder: &str) -> Result<()> {
        let sql = "update workflows set holder = null, lease_until = null
            where id = $1 and holder = $2";
        self.0.run(sql, vals![id.uuid(), holder]).await?;
        Ok(())
    }

    /// Changes a run. Fails if another process has taken it.
    pub async fn change(
        &mut self,
        id: WorkflowId,
        holder: &str,
        change: WorkflowChange<'_>,
    ) -> Result<()> {
        let sql =
            "update workflows set status = $3, error = $4, ended_at = $5, changes = changes + 1
            where id = $1 and holder = $2";
        let WorkflowChange {
            status,
            error,
            ended_at,
        } = change;
        let lost = "another process runs the workflow";
        let values = vals![id.uuid(), holder, status, error, ended_at];
        self.0.must(sql, values, lost).await
    }

    /// Asks the process that runs it to cancel a run. Returns false if the run has ended.
    pub async fn ask_cancel(&mut self, id: WorkflowId) -> Result<bool> {
        let sql = "update workflows set cancel = 1, changes = changes + 1
            where id = $1 and status in ('running', 'waiting')";
        Ok(self.0.run(sql, vals![id.uuid()]).await? > 0)
    }

    /// Makes a run that has ended run again.
    pub async fn reopen(&mut self, id: WorkflowId, file: &str, prompts: &str) -> Result<()> {
        let sql =
            "update workflows set status = 'running', cancel = 0, error = null, ended_at = null,
            file = $2, prompts = $3, changes = changes + 1 where id = $1";
        self.0.run(sql, vals![id.uuid(), file, prompts]).await?;
        Ok(())
    }

    /// Stores the state of a step, new or known, and counts the change.
    pub async fn set_step(&mut self, id: WorkflowId, step: &StoredStep) -> Result<()> {
        let sql = "insert into workflow_steps
            (workflow_id, n, item, id, kind, status, attempts, conversation_id, turn_id, state, started_at, ended_at)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
            on conflict (workflow_id, n, item) do update set status = excluded.status, attempts = excluded.attempts,
                conversation_id = excluded.conversation_id, turn_id = excluded.turn_id, state = excluded.state,
                started_at = excluded.started_at, ended_at = excluded.ended_at, id = excluded.id, kind = excluded.kind";
        let values = vals![
            id.uuid(),
            step.n,
            step.item.unwrap_or(NO_ITEM),
            step.id.as_str(),
            step.kind.as_str(),
            step.status.as_str(),
            step.attempts,
            step.conversation.map(ConversationId::uuid),
            step.turn.map(TurnId::uuid),
            step.state.as_str(),
            step.started_at,
            step.ended_at,
        ];
        self.0.run(sql, values).await?;
        let sql = "update workflows set changes = changes + 1 where id = $1";
        self.0.run(sql, vals![id.uuid()]).await?;
        Ok(())
    }

    /// Fails if another process has taken the run.
    pub async fn check_holder(&mut self, id: WorkflowId, holder: &str) -> Result<()> {
        let sql = "select 1 as found from workflows where id = $1 and holder = $2";
        match one(self.0, sql, vals![id.uuid(), holder]).await? {
            Some(_) => Ok(()),
            None => Err(Error::Conflict("another process runs the workflow")),
        }
    }

    /// Removes the steps from `n` on, and the items of a step.
    pub async fn remove_steps(&mut self, id: WorkflowId, n: i64) -> Result<()> {
        let sql = "delete from workflow_steps where workflow_id = $1 and n >= $2";
        self.0.run(sql, vals![id.uuid(), n]).await?;
        Ok(())
    }

    /// Removes the items of a step, which runs again.
    pub async fn remove_items(&mut self, id: WorkflowId, n: i64) -> Result<()> {
        let sql = "delete from workflow_steps where workflow_id = $1 and n = $2 and item >= 0";
        self.0.run(sql, vals![id.uuid(), n]).await?;
        Ok(())
    }
}

impl<C: Ask> Workflows<'_, C> {
    /// Returns a run.
    pub async fn get(&mut self, id: WorkflowId) -> Result<Option<StoredWorkflow>> {
        let row = one(
            self.0,
            "select * from workflows where id = $1",
            vals![id.uuid()],
        )
        .await?;
        row.as_ref().map(read).transpose()
    }

    /// Returns the run with this key.
    pub async fn by_key(&mut self, namespace: &str, key: &str) -> Result<Option<StoredWorkflow>> {
        let sql = "select * from workflows where namespace = $1 and key = $2";
        let row = one(self.0, sql, vals![namespace, key]).await?;
        row.as_ref().map(read).transpose()
    }

    /// Lists runs, newest first.
    pub async fn list(
        &mut self,
        namespace: &str,
        before: Option<WorkflowId>,
        limit: i64,
    ) -> Result<Vec<StoredWorkflow>> {
        let sql =
            "select * from workflows where namespace = $1 and id < $2 order by id desc limit $3";
        let before = before.map_or(uuid::Uuid::max(), WorkflowId::uuid);
        let found = rows(self.0, sql, vals![namespace, before, limit]).await?;
        found.iter().map(read).collect()
    }

    /// Returns the runs that have not ended, of all namespaces, oldest first.
    pub async fn running(&mut self) -> Result<Vec<StoredWorkflow>> {
        let sql = "select * from workflows where status in ('running', 'waiting') order by id";
        let found = rows(self.0, sql, vals![]).await?;
        found.iter().map(read).collect()
    }

    /// Returns the steps of a run, with their items, in the order of the file.
    pub async fn steps(&mut self, id: WorkflowId) -> Result<Vec<StoredStep>> {
        let sql = "select * from workflow_steps where workflow_id = $1 order by n, item";
        let found = rows(self.0, sql, vals![id.uuid()]).await?;
        found.iter().map(read_step).collect()
    }
}

fn read(row: &Row) -> Result<StoredWorkflow> {
    Ok(StoredWorkflow {
        id: WorkflowId::from_uuid(row.id("id")?),
        namespace: row.text("namespace")?,
        key: row.maybe_text("key")?,
        name: row.text("name")?,
        file: row.text("file")?,
        prompts: row.text("prompts")?,
        inputs: row.text("inputs")?,
        options: row.text("options")?,
        status: row.text("status")?,
        cancel: row.int("cancel")? != 0,
        changes: row.int("changes")?,
        holder: row.maybe_text("holder")?,
        lease_until: row.maybe_int("lease_until")?,
        error: row.maybe_text("error")?,
        started_at: row.int("started_at")?,
        ended_at: row.maybe_int("ended_at")?,
    })
}

fn read_step(row: &Row) -> Result<StoredStep> {
    Ok(StoredStep {
        n: row.int("n")?,
        item: Some(row.int("item")?).filter(|item| *item > NO_ITEM),
        id: row.text("id")?,
        kind: row.text("kind")?,
        status: row.text("status")?,
        attempts: row.int("attempts")?,
        conversation: (row.maybe_id("conversation_id")?).map(ConversationId::from_uuid),
        turn: row.maybe_id("turn_id")?.map(TurnId::from_uuid),
        state: row.text("state")?,
        started_at: row.maybe_int("started_at")?,
        ended_at: row.maybe_int("ended_at")?,
    })
}
