//! Hosts, origins and addresses of requests, parsed as browsers parse them.

use std::net::IpAddr;

use reqwest::Url;

/// Parses a `Host` header. Returns None if it is not just a host and perhaps a port.
pub(crate) fn host(header: &str) -> Option<Url> {
    let url = Url::parse(&format!("http://{header}/")).ok()?;
    plain(&url).filter(|_| !header.contains('/'))
}

/// Parses an `Origin` header. Returns None for `null` and for anything that is not just a scheme, a
/// host and perhaps a port.
pub(crate) fn origin(header: &str) -> Option<Url> {
    let bare = header.split_once("://").map(|(_, rest)| rest);
    let bare = bare.is_some_and(|rest| !rest.contains('/'));
    let url = Url::parse(header).ok()?;
    plain(&url).filter(|_| bare)
}

/// Returns true if `url` is at or below `allowed`: the same origin, and a path that begins with
/// whole segments of the allowed one. Neither may contain a name or password, and the URL no
/// encoded slash, which a server may decode to another path.
pub(crate) fn is_below(url: &str, allowed: &str) -> bool {
    let (Some(url), Some(allowed)) = (web(url), web(allowed)) else {
        return false;
    };
    let path = allowed.path().trim_end_matches('/');
    let rest = url.path().strip_prefix(path);
    let encoded = url.path().to_ascii_lowercase();
    let encoded = encoded.contains("%2f") || encoded.contains("%5c");
    !encoded
        && url.origin() == allowed.origin()
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the IP address of a host that is given as one.
pub(crate) fn ip(url: &Url) -> Option<IpAddr> {
    let host = url.host_str()?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.parse().ok()
}

/// Parses an HTTP URL. Returns None for other schemes and for a URL with a name or password.
pub(crate) fn web(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let anonymous = url.username().is_empty() && url.password().is_none();
    let web = matches!(url.scheme(), "http" | "https") && url.has_host();
    (anonymous && web).then_some(url)
}

fn plain(url: &Url) -> Option<Url> {
    let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    web(url.as_str()).filter(|_| bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_parsed_whole() {
        for (header, name) in [
            ("localhost", "localhost"),
            ("LocalHost:7377", "localhost"),
            ("127.0.0.1:80", "127.0.0.1"),
            ("[::1]:7377", "[::1]"),
        ] {
            let found = host(header).unwrap();
            assert_eq!(found.host_str(), Some(name), "{header}");
        }
        for header in [
            "",
            "[::1]evil.example",
            "[::1].evil.example",
            "localhost:80@evil.example",
            "localhost:x",
            "localhost/evil",
            "localhost?evil",
            "a b",
        ] {
            assert_eq!(host(header), None, "{header}");
        }
    }

    #[test]
    fn an_origin_is_parsed_whole() {
        assert!(origin("https://hub.example").is_some());
        assert!(origin("http://[::1]:7377").is_some());
        for header in [
            "null",
            "localhost",
            "file://localhost",
            "evil://[::1]",
            "http://[::1].evil.example",
            "http://localhost@evil.example",
            "http://localhost/path",
            "https://hub.example/",
        ] {
            assert_eq!(origin(header), None, "{header}");
        }
    }

    #[test]
    fn an_address_is_compared_by_origin_and_segments() {
        let allowed = |url| is_below(url, "https://hooks.example/rejoin");
        assert!(allowed("https://hooks.example/rejoin"));
        assert!(allowed("https://hooks.example:443/rejoin/a?b=c"));
        assert!(allowed("https://HOOKS.example/rejoin/"));
        for url in [
            "https://hooks.example/rejoined",
            "https://hooks.example/other",
            "https://hooks.example/rejoin/../other",
            "https://hooks.example/rejoin/%2e%2e/other",
            "https://hooks.example/rejoin/..%2Fother",
            "https://hooks.example.evil.example/rejoin",
            "https://hooks.example:444/rejoin",
            "http://hooks.example/rejoin",
            "https://me@hooks.example/rejoin",
            "https://evil.example/https://hooks.example/rejoin",
            "not an address",
        ] {
            assert!(!allowed(url), "{url}");
        }
        let whole = |url| is_below(url, "https://hooks.example");
        assert!(whole("https://hooks.example/anything"));
        assert!(!whole("https://hooks.example.evil.example/"));
        assert!(!whole("https://hooks.example@evil.example/"));
        assert!(!is_below("https://a.example/", "a.example"));
    }
}
