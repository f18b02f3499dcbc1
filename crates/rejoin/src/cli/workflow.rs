//! `rejoin workflow`

mod files;
mod live;
mod plan;
mod run;
mod show;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli::command::{Help, Run, Task, TrustCheck};

/// Run steps that continue each other's conversations
///
/// A file describes the steps: agents, commands and approvals. docs/workflows.md explains it.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin workflow new > review.yaml\n  rejoin workflow check review.yaml\n  rejoin workflow run review.yaml -i pr=17\n  rejoin workflow resume review-17"
)]
pub(crate) struct WorkflowArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Report all mistakes of a file with line and column
    Check {
        /// File of the workflow
        file: PathBuf,
    },
    /// Print the steps in order, with agents, continuations and forks
    Plan(PlanArgs),
    /// Run a workflow
    Run(RunArgs),
    /// Run with the demo agent in place of every agent; print commands without running them
    Test(PlanArgs),
    /// List the runs, newest first
    List,
    /// Show a run and its steps
    Show {
        /// Id or key of the run
        #[arg(value_name = "RUN")]
        run: String,
    },
    /// Continue a run, or begin it again at a step
    Resume(ResumeArgs),
    /// End the running steps of a run
    Cancel {
        /// Id or key of the run
        #[arg(value_name = "RUN")]
        run: String,
    },
    /// Print a commented example
    New,
    /// Print the JSON Schema of the file format
    Schema,
}

#[derive(Debug, Args)]
struct PlanArgs {
    /// File of the workflow
    file: PathBuf,
    /// Value of an input
    #[arg(short = 'i', long = "input", value_name = "NAME=VALUE")]
    inputs: Vec<String>,
}

#[derive(Debug, Args)]
struct RunArgs {
    /// File of the workflow
    file: PathBuf,
    /// Value of an input
    #[arg(short = 'i', long = "input", value_name = "NAME=VALUE")]
    inputs: Vec<String>,
    /// Key of the run: the same command again continues the same run
    #[arg(short, long, value_name = "KEY")]
    key: Option<String>,
    /// Folder of steps that name none
    #[arg(short, long, value_name = "DIR")]
    workdir: Option<PathBuf>,
    /// Return once the run is accepted (needs a daemon)
    #[arg(short, long)]
    detach: bool,
    /// Print the changes of steps as JSON lines
    #[arg(long)]
    stream: bool,
}

#[derive(Debug, Args)]
struct ResumeArgs {
    /// Id or key of the run
    #[arg(value_name = "RUN")]
    run: String,
    /// Begin again at this step
    #[arg(long, value_name = "STEP")]
    from: Option<String>,
    /// Use this file from now on
    #[arg(long, value_name = "FILE", requires = "from")]
    file: Option<PathBuf>,
    /// Print the changes of steps as JSON lines
    #[arg(long)]
    stream: bool,
}

impl Run for WorkflowArgs {
    const NAME: &'static str = "workflow";
    const HELP: Help = Help::Talk("steps in a file");

    fn task(self) -> Task {
        match self.what {
            What::Check { file } => Task::machine(file, files::check),
            What::New => Task::machine((), files::example),
            What::Schema => Task::machine((), files::schema),
            What::Plan(args) => Task::store(args, plan::plan),
            What::Run(args) => Task::hub(args, run::run)
                .by_daemon()
                .trust(TrustCheck::Required),
            What::Test(args) => Task::hub(args, run::test)
                .by_daemon()
                .trust(TrustCheck::Required),
            What::Resume(args) => Task::hub(args, run::resume)
                .by_daemon()
                .trust(TrustCheck::Required),
            What::Cancel { run } => Task::hub(run, run::cancel).by_daemon(),
            What::List => Task::hub((), show::list),
            What::Show { run } => Task::hub(run, show::show),
        }
    }
}
