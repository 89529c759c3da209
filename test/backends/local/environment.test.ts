/** The variables that commands get of the program's own. */
import { assert, describe, it } from "@effect/vitest"
import { variablesOf } from "../../../src/backends/internal/local/environment.ts"

const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefgh"

/** Variables of developers, and whether commands get them. */
const table: ReadonlyArray<readonly [name: string, value: string, isShown: boolean]> = [
  ["PATH", "/usr/bin", true],
  ["HOME", "/home/u", true],
  ["USER", "u", true],
  ["SHELL", "/bin/bash", true],
  ["LANG", "de_DE.UTF-8", true],
  ["LC_ALL", "C", true],
  ["EDITOR", "vim", true],
  ["SSH_AUTH_SOCK", "/run/agent", true],
  ["SSH_AGENT_PID", "12", true],
  ["XAUTHORITY", "/run/xauth", true],
  ["DISPLAY", ":0", true],
  ["DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/bus", true],
  ["XDG_RUNTIME_DIR", "/run/user/1", true],
  ["GPG_AGENT_INFO", "/run/gpg", true],
  ["GPG_TTY", "/dev/pts/1", true],
  ["JAVA_HOME", "/opt/java", true],
  ["GOPATH", "/home/u/go", true],
  ["CARGO_HOME", "/home/u/.cargo", true],
  ["NVM_DIR", "/home/u/.nvm", true],
  ["VIRTUAL_ENV", "/home/u/venv", true],
  ["DOCKER_HOST", "unix:///run/docker.sock", true],
  ["KUBECONFIG", "/home/u/.kube/config", true],
  ["http_proxy", "http://proxy:3128", true],
  ["NO_PROXY", "localhost", true],
  ["NODE_ENV", "test", true],
  ["NODE_OPTIONS", "--max-old-space-size=4096", true],
  ["CI", "1", true],
  ["TLS_KEY_PATH", "/etc/key.pem", true],
  ["SSL_CERT_FILE", "/etc/cert.pem", true],
  ["GOOGLE_APPLICATION_CREDENTIALS", "/home/u/gcp.json", true],
  ["KEYBOARD_LAYOUT", "de", true],
  ["TOKENIZERS_PARALLELISM", "false", true],
  ["DATABASE_HOST", "db", true],
  ["REDIS_URL", "redis://localhost:6379", true],
  ["PATTERN", "x", true],
  ["AUTHOR", "Ada", true],
  ["MONKEY_BUSINESS", "1", true],
  ["OPENAI_API_KEY", "x", false],
  ["ANTHROPIC_API_KEY", "x", false],
  ["NPM_TOKEN", "x", false],
  ["GITHUB_TOKEN", "x", false],
  ["GH_PAT", "x", false],
  ["NODE_AUTH_TOKEN", "x", false],
  ["AWS_SECRET_ACCESS_KEY", "x", false],
  ["AWS_ACCESS_KEY_ID", "x", false],
  ["AWS_SESSION_TOKEN", "x", false],
  ["DB_PASSWORD", "x", false],
  ["PGPASSWORD", "x", false],
  ["MYSQL_PWD", "x", false],
  ["SMTP_PASS", "x", false],
  ["KEY_PASSPHRASE", "x", false],
  ["CLIENT_SECRET", "x", false],
  ["SENTRY_DSN", "x", false],
  ["SESSION_COOKIE", "x", false],
  ["SLACK_WEBHOOK_URL", "x", false],
  ["DOCKER_AUTH_CONFIG", "{}", false],
  ["GOOGLE_CREDENTIALS", "{}", false],
  ["apikey", "x", false],
  ["DATABASE_URL", "postgres://u:pw@db/app", false],
  ["https_proxy", "http://u:pw@proxy:3128", false],
  ["SETTINGS", `token ${jwt}`, false],
  ["GIT_CONFIG_VALUE_0", "AUTHORIZATION: basic eDpwYXNzd29yZA==", false],
  ["CONNECTION", "Server=db;Password=hunter2hunter2", false],
  ["DEPLOY", "ghp_0123456789abcdefghijABCDEFGHIJ", false]
]

const given = Object.fromEntries(table.map(([name, value]) => [name, value]))

describe("variables of commands", () => {
  it("are all but those that look like secrets, by name or by value", () => {
    const { env, hidden } = variablesOf(given, { inherit: "all" })
    for (const [name, value, isShown] of table) {
      const expected = isShown ? value : undefined
      assert.strictEqual(env[name], expected, name)
      assert.strictEqual(hidden.includes(name), !isShown, name)
    }
    assert.deepInclude(env, { TERM: "dumb", GIT_TERMINAL_PROMPT: "0", PAGER: "cat", GIT_PAGER: "cat" })
  })

  it("are few without a word, and can be hidden, shown and set by name", () => {
    const few = variablesOf(given, {})
    assert.deepStrictEqual(Object.keys(few.env).toSorted(), ["HOME", "LANG", "PATH", "TERM"])
    const chosen = variablesOf(given, {
      inherit: "all",
      hide: ["JAVA_*", "NPM_TOKEN"],
      show: ["npm_token", "*_PAT"],
      set: { DB_PASSWORD: "mine" }
    })
    assert.deepStrictEqual(
      ["JAVA_HOME", "NPM_TOKEN", "GH_PAT", "DB_PASSWORD"].map((name) => chosen.env[name]),
      [undefined, undefined, "x", "mine"]
    )
    assert.notInclude(chosen.hidden, "DB_PASSWORD")
  })
})
