//! Extractors for bodies and parameters that report errors in the same form as everything else.

use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use rejoin_hub::ChangeMode;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

use crate::body;
use crate::guard::Caller;
use crate::problem::{Refusal, Result};

/// JSON body.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &S) -> Result<Self> {
        read(&body::whole(request).await?).map(Self)
    }
}

/// Optional JSON body.
pub(crate) struct MaybeBody<T>(pub(crate) T);

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for MaybeBody<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &S) -> Result<Self> {
        let bytes = body::whole(request).await?;
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self(T::default()));
        }
        read(&bytes).map(Self)
    }
}

/// Explains an unknown field, with the field that was probably meant.
fn misnamed(error: &str) -> Option<String> {
    let (field, known) = error.strip_prefix("unknown field `")?.split_once('`')?;
    let known = known.split('`').skip(1).step_by(2);
    let near = known.min_by_key(|name| strsim::damerau_levenshtein(field, name))?;
    let field: String = field.chars().filter(|c| !c.is_control()).take(60).collect();
    Some(if strsim::damerau_levenshtein(&field, near) <= 3 {
        format!("there is no field `{field}`; did you mean `{near}`?")
    } else {
        format!("there is no field `{field}`")
    })
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|e| {
        if let Some(why) = misnamed(&e.to_string()) {
            return Refusal::usage(why);
        }
        let why: String = e
            .to_string()
            .chars()
            .filter(|c| !c.is_control())
            .take(300)
            .collect();
        Refusal::usage(format!("the body is not what is expected here: {why}"))
    })
}

/// Query of a change: carry it out, or only preview it.
#[derive(Debug, Clone, Copy, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Dry {
    /// Say what it would affect, and change nothing.
    #[serde(default)]
    dry_run: bool,
}

impl Dry {
    pub(crate) fn doing(self) -> ChangeMode {
        if self.dry_run {
            ChangeMode::Later
        } else {
            ChangeMode::Now
        }
    }
}

/// Query parameters.
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        match Query::<T>::try_from_uri(&parts.uri) {
            Ok(Query(found)) => Ok(Self(found)),
            Err(e) => {
                let why: String = e
                    .body_text()
                    .chars()
                    .filter(|c| !c.is_control())
                    .take(300)
                    .collect();
                Err(Refusal::usage(why))
            }
        }
    }
}

/// Extracts the caller, which the guard has admitted.
impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| Refusal::unauthorized("a token is needed: Authorization: Bearer …"))
    }
}
