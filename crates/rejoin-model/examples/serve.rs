//! Serves the scripted model until stdin closes: `cargo run -p rejoin-model --example serve`.
//! Arguments: a log file, then `strict`, both optional.

use std::io::{Read, Write};

use rejoin_model::{ModelServer, Options};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let options = Options {
        log: arguments.next().map(Into::into),
        strict: arguments.next().as_deref() == Some("strict"),
        ..Options::default()
    };
    let server = ModelServer::start(options).await?;
    writeln!(std::io::stdout(), "{}", server.url())?;
    let stdin_closed = tokio::task::spawn_blocking(|| {
        let mut ignored = Vec::new();
        drop(std::io::stdin().read_to_end(&mut ignored));
    });
    server
        .serve_until(async { drop(stdin_closed.await) })
        .await?;
    Ok(())
}
