//! Description of the API, generated from its handlers.

use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Content, OpenApi as Document, Ref, RefOr, ResponseBuilder};
use utoipa::{Modify, OpenApi};

use crate::problem::Problem;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "rejoin",
        description = "Keeps conversations with coding agents going across processes and machines.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    components(schemas(Problem)),
    modifiers(&Bearer),
    security(("token" = []))
)]
pub(crate) struct Described;

struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut Document) {
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        if let Some(components) = document.components.as_mut() {
            components.add_security_scheme("token", SecurityScheme::Http(bearer));
        }
    }
}

/// Returns the whole document.
pub fn document() -> Document {
    crate::api::described().1
}

/// Adds error responses to every operation, because any request may be refused, always in the same
/// form.
pub(crate) fn may_be_refused(document: &mut Document) {
    let refused = |why: &str| {
        let content = Content::new(Some(Ref::from_schema_name("Problem")));
        ResponseBuilder::new()
            .description(why)
            .content("application/problem+json", content)
            .build()
    };
    for (path, item) in &mut document.paths.paths {
        let open = path == "/healthz" || path == "/readyz";
        let operations = [
            item.get.as_mut(),
            item.post.as_mut(),
            item.put.as_mut(),
            item.patch.as_mut(),
            item.delete.as_mut(),
        ];
        for operation in operations.into_iter().flatten() {
            let responses = &mut operation.responses.responses;
            for response in responses.values_mut() {
                // Generators require a description.
                if let RefOr::T(response) = response
                    && response.description.is_empty()
                {
                    "As it is now".clone_into(&mut response.description);
                }
            }
            if open {
                continue;
            }
            let known = [("4XX", "It was refused"), ("5XX", "It could not be done")];
            for (status, why) in known {
                let response = RefOr::T(refused(why));
                responses.entry(status.to_owned()).or_insert(response);
            }
        }
    }
}
