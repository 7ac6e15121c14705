//! What is known before any load is sent, and TLS.

use crate::server::{Asked, EVENTS_HEAD, Server, Then, chunk, ending, good, token};
use precipice_dialect::Engine;
use precipice_drive::{
    PreflightError, PromptChoice, PromptForm, ReadyWait, Secret, Target, TargetError, TargetOptions, Wants,
    preflight,
};
use precipice_wire::openai::Endpoint;
use std::io::Write;

fn json(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A vLLM with a vocabulary of 2048 and a window of 100.
fn vllm(asked: &Asked) -> String {
    let path = asked.line.split(' ').nth(1).unwrap_or_default();
    match path {
        "/v1/models" => json("200 OK", r#"{"data":[{"id":"tiny","owned_by":"vllm","max_model_len":100}]}"#),
        "/version" => json("200 OK", r#"{"version":"0.27.1"}"#),
        "/metrics" => json("200 OK", "vllm:num_requests_running 0\n"),
        "/v1/completions" if asked.body.contains("31999") => {
            // As vLLM 0.27.1 does: inside a stream that began with 200.
            let error =
                "data: {\"error\":{\"message\":\"Token id 31999 is out of vocabulary\",\"code\":400}}\n\n";
            EVENTS_HEAD.to_owned() + &chunk(error) + &chunk("data: [DONE]\n\n") + "0\r\n\r\n"
        }
        "/v1/completions" | "/v1/chat/completions" => good(8),
        _ => json("404 Not Found", r#"{"detail":"Not Found"}"#),
    }
}

fn serve(answer: fn(&Asked) -> String) -> Server {
    Server::start(move |asked, stream| {
        stream.write_all(answer(asked).as_bytes()).ok();
        Then::Keep
    })
}

fn target(url: &str, endpoint: Endpoint) -> Target {
    Target::new(&TargetOptions { url: url.to_owned(), endpoint, ..TargetOptions::default() }).unwrap()
}

fn refusal(server: &Server, wants: &Wants) -> String {
    preflight(&target(&server.url(), Endpoint::Completions), wants).unwrap_err().to_string()
}

#[test]
fn a_vllm_is_known_and_its_vocabulary_found() {
    let server = serve(vllm);
    let found = preflight(&target(&server.url(), Endpoint::Completions), &Wants::default()).unwrap();
    assert_eq!(found.server.engine, Some(Engine::Vllm));
    assert_eq!(found.server.version.as_deref(), Some("0.27.1"));
    assert_eq!((found.server.model.as_deref(), found.server.max_model_len), (Some("tiny"), Some(100)));
    assert!(
        matches!(&found.form.prompt, PromptForm::Ids(range) if *range == (1000..2048)),
        "{:?}",
        found.form.prompt
    );
    assert!(found.form.one_token_an_event && !found.form.continuous_usage);
    assert_eq!(found.server.metrics_urls, [format!("{}/metrics", server.url())]);
    assert!(found.warnings.is_empty(), "{:?}", found.warnings);
}

#[test]
fn the_page_of_metrics_names_the_engine_where_the_list_of_models_does_not() {
    // As behind a proxy that rewrites the list: no owner, no window.
    let behind_a_proxy = |asked: &Asked| match asked.line.split(' ').nth(1).unwrap_or_default() {
        "/v1/models" => json("200 OK", r#"{"data":[{"id":"tiny"}]}"#),
        "/metrics" => json("200 OK", "python_info 1\nsglang:num_running_reqs 0\n"),
        "/get_server_info" => json("200 OK", r#"{"version":"0.5.0","max_running_requests":48}"#),
        "/v1/completions" => good(8),
        _ => json("404 Not Found", "{}"),
    };
    let server = serve(behind_a_proxy);
    let target = target(&server.url(), Endpoint::Completions);
    let found = preflight(&target, &Wants::default()).unwrap().server;
    assert_eq!((found.engine, found.version.as_deref()), (Some(Engine::Sglang), Some("0.5.0")));
    assert_eq!(found.max_num_seqs, Some(48));
    let blind = preflight(&target, &Wants { no_metrics: true, ..Wants::default() }).unwrap().server;
    assert_eq!(blind.engine, None);
}

#[test]
fn what_cannot_work_is_told_with_its_flag() {
    let server = serve(vllm);
    let long = Wants { longest: Some((90, 11)), ..Wants::default() };
    assert!(refusal(&server, &long).starts_with("--input-tokens 90 and --output-tokens 11 make 101"));
    let other = Wants { model: Some("gpt".to_owned()), ..Wants::default() };
    assert_eq!(refusal(&server, &other), "--model gpt: not served there; it serves tiny");
    let many = Wants { in_flight: Some(u32::MAX), ..Wants::default() };
    assert!(refusal(&server, &many).starts_with("--concurrency: "));
    let options = TargetOptions::default();
    let metrics =
        precipice_drive::MetricsSource::new(&format!("{}/nowhere", server.url()), &options).unwrap();
    let elsewhere = Wants { metrics: vec![metrics], ..Wants::default() };
    assert!(refusal(&server, &elsewhere).starts_with("--metrics-url http://"));
}

#[test]
fn somebody_else_answers() {
    let page = serve(|_| json("200 OK", "<html>Welcome to nginx</html>"));
    let said = refusal(&page, &Wants::default());
    assert!(
        said.starts_with("--url http://") && said.contains("not JSON") && said.contains("Welcome"),
        "{said}"
    );
    let empty = serve(|_| json("404 Not Found", "{}"));
    assert!(refusal(&empty, &Wants::default()).contains("status 404"));
    let locked = serve(|_| json("401 Unauthorized", "{}"));
    assert!(refusal(&locked, &Wants::default()).contains("--api-key-env"));
}

#[test]
fn nobody_answers() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let refused = preflight(&target(&url, Endpoint::Completions), &Wants::default()).unwrap_err();
    assert!(matches!(refused, PreflightError::Unreachable(_)));
    assert!(refused.to_string().starts_with("--url: http://127.0.0.1:"), "{refused}");
}

#[test]
fn one_of_several_models_must_be_named() {
    let server = serve(|_| json("200 OK", r#"{"data":[{"id":"a"},{"id":"b"}]}"#));
    assert!(refusal(&server, &Wants::default()).contains("--model: the server has several models (a, b)"));
}

/// Counts one and a half tokens a word and 10 for its template.
fn counts_words(asked: &Asked) -> String {
    if !asked.line.starts_with("POST") {
        return vllm(asked);
    }
    let body: serde_json::Value = serde_json::from_str(&asked.body).unwrap();
    let words = body["messages"][0]["content"].as_str().unwrap().split(' ').count();
    let body: String = (1..8).map(|_| token("a")).collect();
    EVENTS_HEAD.to_owned() + &body + &ending(10 + words * 3 / 2, 8)
}

/// As a llama.cpp whose slots are small.
#[test]
fn a_window_shorter_than_the_question_is_calibrated_too() {
    let server = serve(|asked| {
        if asked.body.matches(' ').count() > 100 {
            return json(
                "400 Bad Request",
                r#"{"error":{"message":"request (250 tokens) exceeds the available context size (100 tokens)"}}"#,
            );
        }
        counts_words(asked)
    });
    let found = preflight(&target(&server.url(), Endpoint::Chat), &Wants::default()).unwrap();
    let fit = found.words.unwrap();
    assert!((fit.tokens_per_word - 1.5).abs() < 1e-6 && (fit.overhead - 10.0).abs() < 1e-6, "{fit:?}");
}

#[test]
fn text_prompts_are_calibrated() {
    let server = serve(counts_words);
    let found = preflight(&target(&server.url(), Endpoint::Chat), &Wants::default()).unwrap();
    let fit = found.words.unwrap();
    assert!((fit.tokens_per_word - 1.5).abs() < 1e-6 && (fit.overhead - 10.0).abs() < 1e-6, "{fit:?}");
}

#[test]
fn ids_that_are_asked_for_must_be_taken() {
    let server = serve(|asked| {
        if asked.line.starts_with("POST") {
            return json("400 Bad Request", r#"{"error":{"message":"prompt must be a string"}}"#);
        }
        vllm(asked)
    });
    let wants = Wants { prompts: PromptChoice::Ids, ..Wants::default() };
    assert!(refusal(&server, &wants).contains("prompt must be a string"));
}

#[test]
fn the_key_is_sent_and_no_error_shows_it() {
    let server = serve(|_| json("403 Forbidden", "{}"));
    let options = TargetOptions {
        url: server.url(),
        api_key: Some(Secret::new("hush-hush".to_owned())),
        ..TargetOptions::default()
    };
    let error = preflight(&Target::new(&options).unwrap(), &Wants::default()).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hush-hush"));
}

#[test]
fn a_certificate_file_that_holds_none_names_its_flag() {
    let empty = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let options = TargetOptions {
        url: "https://127.0.0.1:1".to_owned(),
        ca_cert: Some(empty),
        ..TargetOptions::default()
    };
    assert!(matches!(Target::new(&options), Err(TargetError::CaCert(_))));
}

/// Its list of models is closed or odd, and everything else works.
fn listing(answer: &'static str) -> Server {
    Server::start(move |asked, stream| {
        let path = asked.line.split(' ').nth(1).unwrap_or_default();
        let answer = match path {
            "/v1/models" => answer.to_owned(),
            "/v1/completions" => good(8),
            _ => json("404 Not Found", "{}"),
        };
        stream.write_all(answer.as_bytes()).ok();
        Then::Keep
    })
}

#[test]
fn a_list_of_models_that_is_closed_or_missing_needs_a_name_and_its_words_are_kept() {
    for status in ["403 Forbidden", "404 Not Found", "405 Method Not Allowed"] {
        let closed: &'static str =
            Box::leak(json(status, r#"{"error":{"message":"missing scope"}}"#).into_boxed_str());
        let server = listing(closed);
        let named = Wants { model: Some("m".to_owned()), ..Wants::default() };
        let found = preflight(&target(&server.url(), Endpoint::Completions), &named).unwrap();
        assert_eq!(found.server.model.as_deref(), Some("m"));
        assert!(found.warnings.iter().any(|warning| warning.text.contains("missing scope")), "{status}");
        let said = refusal(&server, &Wants::default());
        assert!(said.contains("missing scope") && said.contains("--model"), "{said}");
    }
}

#[test]
fn a_bare_list_of_models_is_one() {
    let list: &'static str = Box::leak(json("200 OK", r#"[{"id":"m","type":"chat"}]"#).into_boxed_str());
    let server = listing(list);
    let found = preflight(&target(&server.url(), Endpoint::Completions), &Wants::default()).unwrap();
    assert_eq!(found.server.model.as_deref(), Some("m"));
}

#[test]
fn a_long_list_of_models_is_cut() {
    let models: Vec<String> = (0..420).map(|number| format!(r#"{{"id":"vendor/model-{number}"}}"#)).collect();
    let list = json("200 OK", &format!(r#"{{"data":[{}]}}"#, models.join(",")));
    let server = listing(Box::leak(list.into_boxed_str()));
    let said = refusal(&server, &Wants::default());
    assert!(said.len() < 400 && said.contains("412 more"), "{said}");
}

#[test]
fn a_base_without_v1_is_found() {
    let server = Server::start(|asked, stream| {
        let answer = match asked.line.split(' ').nth(1).unwrap_or_default() {
            "/api/models" => json("200 OK", r#"{"data":[{"id":"m"}]}"#),
            "/api/completions" => good(8),
            _ => json("404 Not Found", "{}"),
        };
        stream.write_all(answer.as_bytes()).ok();
        Then::Keep
    });
    let url = format!("{}/api", server.url());
    let found = preflight(&target(&url, Endpoint::Completions), &Wants::default()).unwrap();
    assert_eq!(found.target.endpoint_path(), "/api/completions");
}

#[test]
fn a_server_that_loads_its_model_is_waited_for() {
    let server = Server::start(|asked, stream| {
        let loading = r#"{"error":{"code":503,"message":"Loading model"}}"#;
        let answer = match asked.line.split(' ').nth(1).unwrap_or_default() {
            "/v1/models" if asked.number == 0 => json("503 Service Unavailable", loading),
            "/v1/models" => json("200 OK", r#"{"data":[{"id":"m"}]}"#),
            "/v1/completions" => good(8),
            _ => json("404 Not Found", "{}"),
        };
        stream.write_all(answer.as_bytes()).ok();
        Then::Keep
    });
    assert!(preflight(&target(&server.url(), Endpoint::Completions), &Wants::default()).is_ok());
    let never = listing(Box::leak(json("503 Service Unavailable", "{}").into_boxed_str()));
    let ready = ReadyWait { limit: std::time::Duration::ZERO, ..ReadyWait::default() };
    let said = refusal(&never, &Wants { ready, ..Wants::default() });
    assert!(said.contains("loading its model") && said.contains("--ready-timeout"), "{said}");
}

#[test]
fn one_failing_answer_is_no_verdict() {
    let server = Server::start(|asked, stream| {
        let answer = match (asked.line.split(' ').nth(1).unwrap_or_default(), asked.number % 2) {
            ("/v1/models" | "/v1/completions", 0) => json("500 Internal Server Error", "{}"),
            ("/v1/models", _) => json("200 OK", r#"{"data":[{"id":"m","owned_by":"vllm"}]}"#),
            ("/v1/completions", _) => good(8),
            _ => json("404 Not Found", "{}"),
        };
        stream.write_all(answer.as_bytes()).ok();
        Then::Keep
    });
    let wants = Wants { no_metrics: true, ..Wants::default() };
    preflight(&target(&server.url(), Endpoint::Completions), &wants).unwrap();
}

/// A server that repeats the key in its error.
#[test]
fn a_key_that_the_server_repeats_is_not_shown() {
    let server = Server::start(|_, stream| {
        let said = json("401 Unauthorized", r#"{"error":{"message":"no such key: sk-very-secret"}}"#);
        stream.write_all(said.as_bytes()).ok();
        Then::Keep
    });
    let options = TargetOptions {
        url: server.url(),
        api_key: Some(Secret::new("sk-very-secret".to_owned())),
        ..TargetOptions::default()
    };
    let said = preflight(&Target::new(&options).unwrap(), &Wants::default()).unwrap_err().to_string();
    assert!(said.contains("no such key: ***") && !said.contains("very-secret"), "{said}");
}

#[test]
fn a_first_answer_that_is_cut_behind_its_done_is_one() {
    let server = Server::start(|asked, stream| {
        let answer = match asked.line.split(' ').nth(1).unwrap_or_default() {
            "/v1/models" => json("200 OK", r#"{"data":[{"id":"m"}]}"#),
            "/v1/completions" => good(8).trim_end_matches("0\r\n\r\n").to_owned(),
            _ => json("404 Not Found", "{}"),
        };
        stream.write_all(answer.as_bytes()).ok();
        if asked.line.contains("completions") { Then::Close } else { Then::Keep }
    });
    preflight(&target(&server.url(), Endpoint::Completions), &Wants::default()).unwrap();
}
