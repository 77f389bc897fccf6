//! Tables of secrets and of harmless look-alikes.

use super::*;

/// Texts with a secret.
const SHAPES: &[(&str, &str)] = &[
    // Variables and assignments.
    ("DB_PASS=hunter2 make migrate", "hunter2"),
    ("MYSQL_PWD=hunter2 mysqldump shop", "hunter2"),
    ("PGPASSWORD=hunter2 psql -h db", "hunter2"),
    ("export API_KEY='abc def ghi'", "abc def ghi"),
    (
        "PASSWORD=\"correct horse battery staple\" ./run",
        "correct horse battery staple",
    ),
    ("export GITHUB_TOKEN=abc123def456", "abc123def456"),
    ("SECRET_KEY_BASE=7f3a9c rails s", "7f3a9c"),
    (
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCY",
    ),
    (
        "AWS_SECRET_ACCESS_KEY=/bPxRfiCYwJalrXUtnFEMI+K7MDENG",
        "/bPxRfiCYwJalrXUtnFEMI+K7MDENG",
    ),
    ("$env:API_TOKEN = \"abc123\"", "abc123"),
    ("os.environ['STRIPE_SECRET'] = 'abc123'", "abc123"),
    ("client_secret := \"s3cr3t-value\"", "s3cr3t-value"),
    ("spring.datasource.password=s3cr3t", "s3cr3t"),
    (
        "//registry.example.org/:_authToken=abcdef0123",
        "abcdef0123",
    ),
    ("ENV DB_PASSWORD hunter2", "hunter2"),
    (
        "aws configure set aws_secret_access_key wJalrXUtn",
        "wJalrXUtn",
    ),
    ("requirepass hunter2", "hunter2"),
    // JSON, YAML and XML.
    (r#"{"pass":"hunter2"}"#, "hunter2"),
    (r#"{"secret": "hunter2", "user": "me"}"#, "hunter2"),
    (r#"{"token" : "tok 12 34"}"#, "tok 12 34"),
    (
        r#"{"db":{"userPassword":"it's \"quoted\" here"}}"#,
        r#"it's \"quoted\" here"#,
    ),
    (r#"{\"password\":\"hunter2\"}"#, "hunter2"),
    (r#"{"tokens":["abc123def","ghi456jkl"]}"#, "ghi456jkl"),
    (
        r#"{"auths":{"ghcr.io":{"auth":"dXNlcjpwYXNz"}}}"#,
        "dXNlcjpwYXNz",
    ),
    ("{'api-key': 'abc123'}", "abc123"),
    (
        "db:\n  password: correct horse battery\n  port: 5432",
        "correct horse battery",
    ),
    ("clientSecret: abc-123-def", "abc-123-def"),
    ("<password>hunter2</password>", "hunter2"),
    // Options and headers.
    ("curl -u user:hunter2 https://example.org", "hunter2"),
    ("curl -uuser:hunter2 https://example.org", "hunter2"),
    ("curl --user 'user:my pass' https://example.org", "my pass"),
    (
        r#"["curl", "-u", "user:hunter2", "https://example.org"]"#,
        "hunter2",
    ),
    (
        "bash -c 'curl -u user:hunter2 https://example.org'",
        "hunter2",
    ),
    ("gh --token abc123 pr list", "abc123"),
    ("vault login -token=abc123", "abc123"),
    ("vault kv put secret/app value=hunter2", "hunter2"),
    ("vault kv put -mount=kv app a=1 b='two words'", "two words"),
    (
        "kubectl create secret generic db --from-literal=key=hunter2",
        "hunter2",
    ),
    (
        "kubectl create secret generic db --from-literal key=hunter2",
        "hunter2",
    ),
    (
        "openssl enc -aes-256-cbc -k hunter2 -in a -out b",
        "hunter2",
    ),
    ("passphrase: three plain words", "three plain words"),
    ("The passphrase: three plain words", "three plain words"),
    (
        "ssh: Passphrase = three plain words; next",
        "three plain words",
    ),
    (r#"["tool","--password","hunter2"]"#, "hunter2"),
    ("mysql -uroot -phunter2 shop", "hunter2"),
    ("sshpass -p hunter2 ssh host", "hunter2"),
    ("docker login -u me -p hunter2 ghcr.io", "hunter2"),
    ("redis-cli -a hunter2 ping", "hunter2"),
    ("openssl rsa -in k.pem -passin pass:hunter2", "hunter2"),
    ("X-Auth: a1b2c3", "a1b2c3"),
    ("curl -H 'X-Auth-Token: a1b2c3' https://x.org", "a1b2c3"),
    (
        "curl -H \"Authorization: Bearer abc.def\" https://x.org",
        "abc.def",
    ),
    ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
    (
        "Proxy-Authorization: Digest username=\"a\", response=\"6629f\"",
        "6629f",
    ),
    (
        "curl -H 'Cookie: sid=8f7a; theme=dark' https://x.org",
        "sid=8f7a",
    ),
    ("Set-Cookie: session=8f7a6b; Path=/", "8f7a6b"),
    // Connection strings and URLs.
    (
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=Zm9v/YmFy+YmF6==;x=y",
        "Zm9v/YmFy+YmF6==",
    ),
    (
        "Server=db;User Id=sa;Password=p@ss,word;Encrypt=true",
        "p@ss,word",
    ),
    (
        "Endpoint=sb://x/;SharedAccessKeyName=root;SharedAccessKey=Zm9vYmFy=",
        "Zm9vYmFy=",
    ),
    ("host=db user=me password=hunter2 dbname=x", "hunter2"),
    ("psql postgres://me:hunter2@db/x", "hunter2"),
    ("mongodb+srv://me:p%40ss@cluster.example.org/db", "p%40ss"),
    ("redis://:hunter2@cache:6379/0", "hunter2"),
    (
        "jdbc:postgresql://db/x?user=me&password=hunter2&ssl=true",
        "hunter2",
    ),
    ("root:hunter2@tcp(127.0.0.1:3306)/shop", "hunter2"),
    (
        "git clone https://x-access-token:a1b2c3d4@github.com/a/b",
        "a1b2c3d4",
    ),
    (
        "https://a.blob.core.windows.net/c?sv=2024&sig=Zm9vYmFyYmF6",
        "Zm9vYmFyYmF6",
    ),
    ("https://hooks.slack.com/services/T00/B00/XyZ123", "XyZ123"),
    ("machine example.org login me password hunter2", "hunter2"),
    ("ALTER USER me WITH PASSWORD 'hunter2';", "hunter2"),
    ("CREATE USER me IDENTIFIED BY 'hunter2'", "hunter2"),
    ("Server=tcp:db;Password=abc 123;Encrypt=true", "abc 123"),
    ("DATABASE_URL=postgres://u:p@ss/w0rd@host/db", "ss/w0rd"),
    ("define('DB_PASSWORD', 'hunter2');", "hunter2"),
    ("OPENAI_KEY=0123456789abcdefghij", "0123456789abcdefghij"),
    ("if (password === 'hunter2') {", "hunter2"),
    ("mail.pass=swordfish", "swordfish"),
    // Formats.
    (
        "echo ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "ghp_0123456789",
    ),
    ("npm_0123456789abcdefghijABCDEFGHIJ012345", "npm_0123456789"),
    (
        "login hf_abcdefghijABCDEFGHIJabcdefghijABCD",
        "hf_abcdefghij",
    ),
    ("ya29.a0AfH6SMBx0123456789-abcdef", "ya29.a0AfH6SMB"),
    ("(key:sk-0123456789abcdefghij)", "sk-0123456789"),
    ("sk-ant-api03-0123456789abcdef-AA", "sk-ant-api03"),
    ("AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7"),
    ("AIzaSyA0123456789abcdefghijklmnopqrstu", "AIzaSyA0123"),
    ("xoxb-123456789012-abcdefghij", "xoxb-123456"),
    (
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVm",
        "eyJhbGciOiJIUzI1NiJ9",
    ),
    ("glpat-0123456789abcdefghij", "glpat-01234"),
    ("sk_live_0123456789abcdef", "sk_live_0123"),
    ("onw_0123456789abcdef0123456789abcdef01234567", "onw_012345"),
    (
        "https://api.telegram.org/bot123456789:AAF0123456789abcdefghijABCDEFGHIJ/getMe",
        "AAF0123456789",
    ),
    // Private keys.
    (
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\ndef\n-----END RSA PRIVATE KEY-----\nx",
        "MIIEabc\ndef",
    ),
    ("a -----BEGIN PRIVATE KEY----- MIIEabc", "MIIEabc"),
    (
        "Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFy\nabc=\n-----END OPENSSH PRIVATE KEY-----",
        "Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFy",
    ),
    (
        "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2g",
        "b3BlbnNzaC1rZXktdjE",
    ),
];

/// Texts that resemble the shapes and have no secret.
const HARMLESS: &[&str] = &[
    "openssl req -new -keyout key.pem -out req.pem",
    "vault kv put secret/app value=@value.txt",
    "vault kv get -field=value secret/app",
    "kubectl create configmap app --from-literal=level=debug",
    "ls -la src",
    "see src/token.rs:12 first",
    "grep -rn token src/",
    "cat token.rs",
    "a sk-12 in the air",
    "pip install sk-learn-contrib-extras",
    "sk_stream_wait_memory(sk, &timeo)",
    "npm_config_cache_directory=/tmp/cache",
    "hf_transformers_download_dir",
    "pypi-mirror-updater-service.example",
    "PWD=/srv/me OLDPWD=/tmp",
    "tests: pass: 12, fail: 3",
    "pass=12 fail=0",
    r#"{"pass": true, "fail": 0}"#,
    "bypass=true compass=north",
    "first_pass=true render_pass: shadows",
    "pass_rate=0.93",
    "mkdir -p target && ssh -p 2222 host",
    "git push -u origin feature:main",
    "docker run -u 1000:1000 image",
    "docker run --user 1000:1000 image",
    "sort -u a:b",
    "python -u script.py",
    "curl -u $USER:$PASSWORD https://example.org",
    "curl -u user https://example.org",
    "mysql -p shop",
    "max_tokens=4096",
    r#"{"total_tokens": 1234, "prompt_tokens": 1000}"#,
    "token_count: 12, token_limit=4000",
    "--max-tokens 4096 --token-budget 10",
    "SyntaxError: Unexpected token: '}'",
    "error: unexpected token: identifier",
    "let token = parser.next_token();",
    "token = lexer.peek()",
    "password=args.password",
    "connect(token=token, password=get_password())",
    "const secret = process.env.SECRET;",
    "password: String, token: &str",
    "fn token(&self) -> Token",
    "match token { Token::Ident => 1 }",
    "password: must be at least 8 characters",
    "PASSWORD=$DB_PASSWORD make",
    "PASSWORD=${DB_PASSWORD:-none} make",
    "token: ${{ secrets.GITHUB_TOKEN }}",
    "password=<your password>",
    "password: ********",
    "secrets: inherit",
    "POSTGRES_PASSWORD_FILE=/run/secrets/db",
    "docker build --secret id=npm,src=.npmrc .",
    "echo x | docker login --password-stdin ghcr.io",
    "secretName: tls-cert",
    "git config credential.helper store",
    "primary_key=id foreign_key=user_id",
    "keyboard: qwerty, monkey=1",
    "nextToken=abc&pageToken=def",
    "the bearer of this letter",
    "Basic usage: onward init",
    "Bearer token missing",
    "author: Bob, authority=example.org",
    "git clone git@github.com:org/repo.git",
    "http://localhost:3000/@vite/client",
    "https://npmjs.com/package/@scope/name",
    "alpine:3.20@sha256:beefdead",
    "npm:lodash@4.17.21",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "sha512-Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6==",
    "7d0c1f6e-6a3f-4c55-9f0e-2b8f6f1c0a11",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me@host",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\nRTESMBAGA1UEChMJQmFsdGltb3JlMRMwEQYDVQQLEwpDeWJlclRydXN0MSIwIAYD\n-----END CERTIFICATE-----",
    "x-amz-date: 20261117T000000Z",
    "signature: fn(a: u8) -> u8",
    "Enter password:\nWelcome back",
    "AWS_ACCESS_KEY_NAME=default",
    "password_changed_at=2026-11-01",
];

#[test]
fn masks_every_shape_of_a_secret() {
    assert!(SHAPES.len() >= 60);
    let masked = SHAPES
        .iter()
        .map(|(text, secret)| (mask(text), text, secret));
    let leaks: Vec<String> = masked
        .filter(|(masked, _, secret)| {
            !masked.contains(MASK) || masked.contains(**secret) || mask(masked) != *masked
        })
        .map(|(masked, text, _)| format!("{text}\n    {masked}\n    {}", mask(&masked)))
        .collect();
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
}

#[test]
fn masks_every_shape_inside_a_json_string() {
    let leaks: Vec<String> = SHAPES
        .iter()
        .filter_map(|(text, secret)| {
            let input = serde_json::json!({ "script": text, "cwd": "/tmp" }).to_string();
            let secret = serde_json::Value::from(*secret).to_string();
            let masked = mask(&input);
            let is_masked = masked.contains(MASK)
                && !masked.contains(secret.trim_matches('"'))
                && masked.starts_with("{\"cwd\"");
            (!is_masked).then(|| format!("{input}\n    {masked}"))
        })
        .collect();
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
}

#[test]
fn leaves_harmless_look_alikes_unchanged() {
    assert!(HARMLESS.len() >= 60);
    let changed: Vec<String> = HARMLESS
        .iter()
        .flat_map(|text| {
            let input = serde_json::json!({ "script": text }).to_string();
            [(*text).to_owned(), input]
        })
        .filter(|text| mask(text) != *text)
        .map(|text| format!("{text}\n    {}", mask(&text)))
        .collect();
    assert!(changed.is_empty(), "{}", changed.join("\n"));
}

#[test]
fn truncation_leaves_no_part_of_a_secret() {
    for (text, secret) in SHAPES {
        let part: String = secret.chars().take(5).collect();
        let whole = mask(text);
        for length in 1..text.chars().count() + 2 {
            let preview = preview(text, length);
            assert!(
                !preview.contains(&part) || whole.contains(&part),
                "{length}: {preview}"
            );
        }
    }
}

#[test]
fn keeps_what_surrounds_a_secret() {
    for (text, masked) in [
        ("PASSWORD=hunter2 make", "PASSWORD=[secret] make"),
        (
            "curl -H 'Authorization: Bearer abc.def' https://x.org",
            "curl -H 'Authorization: Bearer [secret]' https://x.org",
        ),
        ("gh --token abc pr", "gh --token [secret] pr"),
        (r#"{"password": "hunter2"}"#, r#"{"password": "[secret]"}"#),
        (
            "psql postgres://me:hunter2@db/x",
            "psql postgres://me:[secret]@db/x",
        ),
        (
            "curl -u user:pass -v https://x.org",
            "curl -u user:[secret] -v https://x.org",
        ),
        ("PASSWORD=x true", "PASSWORD=[secret] true"),
        ("password:hunter2 x", "password:[secret] x"),
        (
            "Server=db;Pwd=abc;Encrypt=true",
            "Server=db;Pwd=[secret];Encrypt=true",
        ),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nx",
            "-----BEGIN RSA PRIVATE KEY-----[secret]-----END RSA PRIVATE KEY-----\nx",
        ),
        (
            "mysql -uroot -p'hunter2' shop",
            "mysql -uroot -p'[secret]' shop",
        ),
    ] {
        assert_eq!(mask(text), masked);
    }
}

#[test]
fn previews_are_one_line_of_bounded_length() {
    assert_eq!(preview("  a\n b\tc ", 10), "a b c");
    assert_eq!(preview("abcdef", 3), "abc…");
    assert_eq!(preview("äöü", 3), "äöü");
    let long = format!("{} password=hunter2", "x".repeat(10_000));
    assert_eq!(preview(&long, 5), "xxxxx…");
    let long = format!("make {}", "x".repeat(10_000));
    assert_eq!(preview(&long, 8), "make xxx…");
    // A word at the end of the window is not shown in part.
    let cut = format!("a {} sk-{}", " ".repeat(4_080), "0".repeat(40));
    assert_eq!(preview(&cut, 200), "a");
}

const PARTS: &[&str] = &[
    "password",
    "token",
    "PASS",
    "secret",
    "Cookie",
    "Authorization",
    "Bearer ",
    "curl ",
    "-u ",
    "--token",
    "mysql -p",
    "user:",
    "@",
    "://",
    "=",
    ":",
    ": ",
    " = ",
    "\"",
    "\\\"",
    "'",
    "`",
    "\\",
    "\n",
    " ",
    ",",
    ";",
    "&",
    "?",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    "$",
    "${",
    "é",
    "ü日本",
    "hunter2",
    "abc",
    "x",
    "-----BEGIN ",
    "PRIVATE KEY-----",
    "-----END ",
    "[secret]",
    "[sec",
    "Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6",
    "ghp_0123456789abcdefghij",
    "/",
    "|",
    "ENV ",
    "identified by ",
    "htpasswd -b ",
    "123456789:AA",
    "b\"",
];

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(2_000))]

    #[test]
    fn masks_any_text_without_panicking(
        parts in proptest::collection::vec(proptest::sample::select(PARTS), 1..13),
    ) {
        let text = parts.concat();
        mask(&mask(&text));
        proptest::prop_assert!(preview(&text, 10).chars().count() <= 11, "{text:?}");
    }
}
