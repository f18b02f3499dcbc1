//! A document from a URL, in bounded time and memory.

use std::time::Duration;

use rejoin_errors::{CommandError, Result};

const CONNECT: Duration = Duration::from_secs(5);
const ALL: Duration = Duration::from_mins(2);

pub(crate) async fn download(url: &str, longest: u64) -> Result<Vec<u8>> {
    // Addresses of such documents hold their own password.
    let failed = |why: &str| {
        CommandError::unavailable(format!("the download failed: {why}")).try_this("the same again")
    };
    // Another part of this process may have chosen it already.
    let _chosen = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .connect_timeout(CONNECT)
        .timeout(ALL)
        .redirect(reqwest::redirect::Policy::limited(5))
        .build()
        .map_err(|e| failed(&e.without_url().to_string()))?;
    let response = client.get(url).send().await;
    let mut response = response.map_err(|e| failed(&e.without_url().to_string()))?;
    if !response.status().is_success() {
        return Err(failed(&format!("the server said {}", response.status())));
    }
    let mut bytes = vec![];
    loop {
        let chunk = response.chunk().await;
        let Some(chunk) = chunk.map_err(|e| failed(&e.without_url().to_string()))? else {
            return Ok(bytes);
        };
        if (bytes.len() + chunk.len()) as u64 > longest {
            return Err(failed("it is too long"));
        }
        bytes.extend_from_slice(&chunk);
    }
}
