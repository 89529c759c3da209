/** The sign-in with a ChatGPT plan, against a fake of what OpenAI documents. OpenAI's own server was never asked. */
import { spawn } from "node:child_process"
import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises"
import * as http from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Deferred, Effect, Exit, Fiber, Redacted } from "effect"
import { Agent, Tool } from "effect-deepagents"
import { TestClock } from "effect/testing"
import { OpenAi, planToken, signIn, signOut } from "../../src/cli/internal/config/chatgpt.ts"
import { toPlanBody } from "../../src/cli/internal/config/chatgptRequests.ts"
import { credentials, namespace } from "../../src/cli/internal/config/credentials.ts"
import { listModels } from "../../src/cli/internal/config/modelList.ts"
import type { Places } from "../../src/cli/internal/config/places.ts"
import { keyed, modelLayer } from "../../src/cli/internal/config/providers.ts"
import { CredentialStore } from "../../src/stores/CredentialStore.ts"
import { isFull } from "../scale.ts"
import { useProgram } from "./built.ts"
import { openAi } from "./chatgptServer.ts"

const program = useProgram()

const placesOf = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "chatgpt-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true }))
).pipe(Effect.map((data): Places => ({ data, config: data, project: data })))

type Server = Effect.Success<typeof openAi>

/** Runs a test with a folder and a server of its own. */
const withServer = <A, E>(
  test: (server: Server, places: Places) => Effect.Effect<A, E, NodeServices.NodeServices>
): Effect.Effect<A, E> =>
  Effect.gen(function* () {
    const server = yield* openAi
    const places = yield* placesOf
    const { issuer } = server.at
    return yield* Effect.provideService(test(server, places), OpenAi, { issuer, api: `${issuer}/v1` })
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))

/** Begins a sign-in, and gives its page. */
const begin = Effect.fnUntraced(function* (places: Places) {
  const shown = yield* Deferred.make<ReadonlyArray<string>>()
  const fiber = yield* Effect.forkChild(
    signIn(places, (lines) => Deferred.succeed(shown, lines)),
    {
      startImmediately: true
    }
  )
  const lines = yield* Effect.raceFirst(Deferred.await(shown), Effect.as(Fiber.join(fiber), ["ended", "", ""]))
  return { fiber, lines, page: lines[2] ?? "" }
})

const visit = (url: URL | string) => Effect.promise(() => fetch(url).then((response) => response.text()))

/** Signs in: the test is the browser. */
const signInBy = Effect.fnUntraced(function* (server: Server, places: Places, change?: (back: URL) => void) {
  const { fiber, page } = yield* begin(places)
  yield* visit(server.allow(page, change))
  return yield* Fiber.join(fiber)
})

const messageOf = <A, E extends { readonly message: string }, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(effect), ({ message }) => message)

const stored = (places: Places) => Effect.map(keyed(places), (all) => all.find(({ name }) => name === "openai")?.key)

const weather = Tool.make("weather", {
  description: "Tells the weather",
  parameters: {},
  execute: () => Effect.succeed("sunny")
})

const helper = Agent.make({ name: "helper", prompt: "You help.", tools: [weather] })

const ask = (places: Places) =>
  Agent.run(helper, "What is the weather?").pipe(Effect.provide(modelLayer(places, {}, "openai:gpt-6-sol")))

describe("sign-in with a ChatGPT plan", { timeout: 60_000 }, () => {
  it.live("registers this host once, asks for the documented scopes, and sends requests with the token alone", () =>
    withServer((server, places) =>
      Effect.gen(function* () {
        const { fiber, lines, page } = yield* begin(places)
        assert.match(lines.join("\n"), /^Continue with ChatGPT, within 5 minutes:\n\nhttp/)
        const { pathname, searchParams } = new URL(page)
        const { nonce, state, code_challenge, ext_agent_host_id, redirect_uri, ...rest } =
          Object.fromEntries(searchParams)
        assert.strictEqual(pathname, "/api/accounts/authorize")
        assert.match(redirect_uri ?? "", /^http:\/\/127\.0\.0\.1:\d+\/auth\/callback$/)
        assert.match(ext_agent_host_id ?? "", /^urn:uuid:[0-9a-f-]{36}$/)
        for (const value of [nonce, state, code_challenge]) assert.isAtLeast(value?.length ?? 0, 40)
        assert.deepStrictEqual(rest, {
          client_id: "dynamic_agent_client",
          agent_name_hint: "effect-deepagents",
          response_type: "code",
          scope: "openid profile email offline_access resource.invoke chatgpt.tokens.use.direct",
          resource: `${server.at.issuer}/v1`,
          code_challenge_method: "S256"
        })
        assert.include(yield* visit(server.allow(page)), "You are signed in.")
        yield* Fiber.join(fiber)
        const form = Object.fromEntries(new URLSearchParams(server.of("/api/accounts/oauth/token")[0]?.body))
        assert.deepInclude(form, { client_id: "oaiapp_issued", resource: `${server.at.issuer}/v1`, redirect_uri })
        assert.notProperty(form, "client_secret")
        // Nothing is in the clear.
        for (const name of yield* Effect.promise(() => readdir(places.data, { recursive: true }))) {
          const file = join(places.data, name)
          const about = yield* Effect.promise(() => stat(file))
          if (!about.isFile()) continue
          assert.strictEqual(about.mode & 0o077, 0, file)
          assert.notMatch(yield* Effect.promise(() => readFile(file, "utf8")), /access-|refresh-|user-ada/)
        }
        assert.strictEqual(yield* stored(places), "chatgpt")
        const listedNames = (yield* listModels(places)).map(({ name }) => name)
        assert.deepStrictEqual(listedNames, ["openai:gpt-6-sol"])

        server.behaviour.calls = true
        assert.strictEqual((yield* ask(places)).text, "It is sunny.")
        const [first, second] = server.of("/v1/responses")
        assert.deepStrictEqual([first?.authorization, second?.authorization], ["Bearer access-1", "Bearer access-1"])
        const body = JSON.parse(first?.body ?? "{}")
        assert.deepInclude(body, { store: false, stream: true, model: "gpt-6-sol", instructions: "You help." })
        assert.notProperty(body, "tools")
        assert.deepInclude(body.input[0], { type: "additional_tools", role: "developer" })
        assert.deepInclude(body.input[0].tools[0], { type: "function", name: "weather" })
        const answer = JSON.parse(second?.body ?? "{}").input.at(-1)
        assert.deepInclude(answer, { type: "function_call_output", call_id: "call_1", output: "sunny" })

        // The next sign-in is of the same client and host.
        const next = new URL((yield* begin(places)).page).searchParams
        assert.strictEqual(next.get("client_id"), "oaiapp_issued")
        assert.strictEqual(next.get("ext_agent_host_id"), ext_agent_host_id)
        assert.isFalse(next.has("agent_name_hint") || next.has("prompt"))
      })
    )
  )

  it("leaves out parameters that OpenAI refuses with a plan, and moves tools and system messages", () => {
    const refused =
      "background conversation max_output_tokens max_tool_calls metadata moderation multi_agent previous_response_id prompt prompt_cache_retention safety_identifier temperature top_logprobs top_p truncation user"
    const tool = { type: "function", name: "f", description: "", parameters: {}, strict: false }
    assert.deepStrictEqual(
      toPlanBody({
        ...Object.fromEntries(refused.split(" ").map((name) => [name, 1])),
        model: "gpt-6-sol",
        store: true,
        reasoning: { effort: "low" },
        tools: [tool, { type: "web_search" }],
        input: [
          { role: "system", content: "s" },
          { role: "user", content: "u" }
        ]
      }),
      {
        model: "gpt-6-sol",
        reasoning: { effort: "low" },
        tools: [{ type: "web_search" }],
        input: [
          { type: "additional_tools", role: "developer", tools: [tool] },
          { role: "developer", content: "s" },
          { role: "user", content: "u" }
        ],
        store: false,
        stream: true
      }
    )
  })

  it.live("uses no answer with a wrong state, client, nonce, issuer, audience, signature or end", () =>
    withServer((server, places) =>
      Effect.gen(function* () {
        const callbacks: ReadonlyArray<readonly [(back: URL) => void, RegExp]> = [
          [({ searchParams }) => searchParams.set("state", "stolen"), /"state"/],
          [({ searchParams }) => searchParams.delete("client_id"), /names no client/],
          [({ searchParams }) => searchParams.set("client_id", "dynamic_agent_client"), /names no client/],
          [({ searchParams }) => searchParams.append("client_id", "oaiapp_other"), /names no client/],
          [({ searchParams }) => searchParams.set("iss", "https://evil.example"), /"iss"/]
        ]
        for (const [change, problem] of callbacks) {
          assert.match(yield* messageOf(signInBy(server, places, change)), problem)
        }
        assert.strictEqual(server.of("/api/accounts/oauth/token").length, 0)
        const tokens: ReadonlyArray<readonly [Partial<Server["behaviour"]>, RegExp]> = [
          [{ claims: { nonce: "of another" } }, /"nonce"/],
          [{ claims: { iss: "https://evil.example" } }, /"iss"/],
          [{ claims: { aud: "oaiapp_other" } }, /"aud"/],
          [{ claims: { exp: 1 } }, /"exp"/],
          [{ isForged: true }, /signature/],
          [{ metadata: { issuer: "https://evil.example" } }, /another issuer/],
          [{ metadata: { jwks_uri: "https://evil.example/keys" } }, /another server/]
        ]
        const usual = { ...server.behaviour }
        for (const [change, problem] of tokens) {
          Object.assign(server.behaviour, usual, change)
          const message = yield* messageOf(signInBy(server, places))
          assert.match(message, problem)
          assert.match(message, /Sign in again: deepagents models login openai --chatgpt$/)
          assert.notMatch(message, /access-|refresh-|eyJ/)
        }
        assert.strictEqual(yield* stored(places), undefined)
      })
    )
  )

  it.live("answers no request but the callback: of another path, method or host", () =>
    withServer((server, places) =>
      Effect.gen(function* () {
        const { fiber, page } = yield* begin(places)
        const back = server.allow(page)
        const statusOf = (url: URL, init: http.RequestOptions = {}) =>
          Effect.promise(
            () => new Promise((done) => http.request(url, init, (response) => done(response.statusCode)).end())
          )
        assert.strictEqual(yield* statusOf(new URL(`/callback${back.search}`, back)), 404)
        assert.strictEqual(yield* statusOf(back, { method: "POST" }), 404)
        assert.strictEqual(yield* statusOf(back, { headers: { host: "evil.example" } }), 404)
        assert.strictEqual(yield* statusOf(back), 200)
        yield* Fiber.join(fiber)
      })
    )
  )

  it.live("keeps nothing if the person declines, and asks again for a plan that was not allowed", () =>
    withServer((server, places) =>
      Effect.gen(function* () {
        const decline = ({ searchParams }: URL) => {
          for (const name of ["code", "client_id", "scope"]) searchParams.delete(name)
          searchParams.set("error", "access_denied")
        }
        assert.match(yield* messageOf(signInBy(server, places, decline)), /was declined/)
        assert.strictEqual(server.of("/api/accounts/oauth/token").length, 0)
        server.behaviour.scope = "openid profile email offline_access"
        assert.match(yield* messageOf(signInBy(server, places)), /does not allow the use of your ChatGPT plan/)
        assert.include(server.of("/api/accounts/oauth/revoke")[0]?.body, "token=refresh-1")
        assert.strictEqual(yield* stored(places), undefined)
        const { page } = yield* begin(places)
        assert.deepInclude(Object.fromEntries(new URL(page).searchParams), {
          client_id: "oaiapp_issued",
          prompt: "consent"
        })
        const other = ({ searchParams }: URL) => searchParams.set("client_id", "oaiapp_other")
        assert.match(yield* messageOf(signInBy(server, places, other)), /another client/)
        server.behaviour.claims = { sub: "user-eve" }
        assert.match(yield* messageOf(signInBy(server, places)), /another ChatGPT account/)
      })
    )
  )

  it.effect("ends after five minutes without a callback, and at once with Ctrl-C: nobody listens then", () =>
    withServer((_server, places) =>
      Effect.gen(function* () {
        const late = yield* begin(places)
        yield* TestClock.adjust("301 seconds")
        assert.match(yield* messageOf(Fiber.join(late.fiber)), /was not finished within 300 seconds/)
        const ended = yield* begin(places)
        yield* Fiber.interrupt(ended.fiber)
        for (const { page } of [late, ended]) {
          const back = new URL(page).searchParams.get("redirect_uri") ?? ""
          assert.isTrue(Exit.isFailure(yield* Effect.exit(Effect.tryPromise(() => fetch(back)))))
        }
      })
    )
  )

  it.live("prints the way for a browser on another machine", () =>
    withServer((_server, places) =>
      Effect.gen(function* () {
        const env = ConfigProvider.layer(ConfigProvider.fromEnv({ env: { SSH_CONNECTION: "10.0.0.1 1 10.0.0.2 22" } }))
        const { lines, page } = yield* Effect.provide(begin(places), env)
        const { port } = new URL(new URL(page).searchParams.get("redirect_uri") ?? "")
        assert.include(lines.join("\n"), `ssh -L ${port}:127.0.0.1:${port}`)
      })
    )
  )

  it.effect("renews the token before its end with the token of the last renewal; an ended sign-in says so", () =>
    withServer((server, places) =>
      Effect.gen(function* () {
        yield* signInBy(server, places)
        const tokenNow = Effect.map(planToken(places), Redacted.value)
        assert.strictEqual(yield* tokenNow, "access-1")
        yield* TestClock.adjust("59 minutes")
        assert.strictEqual(yield* tokenNow, "access-2")
        yield* TestClock.adjust("59 minutes")
        assert.strictEqual(yield* tokenNow, "access-3")
        const forms = server.of("/api/accounts/oauth/token").map(({ body }) => new URLSearchParams(body))
        assert.deepStrictEqual(
          forms.slice(1).map((form) => [form.get("refresh_token"), form.get("client_id"), form.get("scope")]),
          [
            ["refresh-1", "oaiapp_issued", null],
            ["refresh-2", "oaiapp_issued", null]
          ]
        )
        yield* TestClock.adjust("59 minutes")
        server.behaviour.isDown = true
        assert.match(yield* messageOf(planToken(places)), /not available[^]*try again later\.$/)
        server.behaviour.isDown = false
        server.behaviour.isRevoked = true
        const message = yield* messageOf(ask(places))
        assert.match(message, /sign-in to ChatGPT has ended[^]*Sign in again: deepagents models login openai --chatgpt/)
        assert.notInclude(message, "refresh-3")
        server.behaviour.isRevoked = false
        assert.strictEqual(yield* tokenNow, "access-4")
      })
    )
  )

  it.effect("sends each request of a long run with the token of now, and hides that one too", () =>
    withServer((server, places) =>
      Effect.gen(function* () {
        yield* signInBy(server, places)
        const turn = Agent.run(helper, "What is the weather?")
        const run = Effect.gen(function* () {
          yield* turn
          yield* TestClock.adjust("59 minutes")
          yield* turn
          server.behaviour.error = { status: 400, body: `{"detail":"not this: Bearer access-2"}` }
          return yield* messageOf(turn)
        })
        const message = yield* Effect.provide(run, modelLayer(places, {}, "openai:gpt-6-sol"))
        assert.match(message, /not this: Bearer …/)
        assert.deepStrictEqual(
          server.of("/v1/responses").map(({ authorization }) => authorization),
          ["Bearer access-1", "Bearer access-2", "Bearer access-2"]
        )
      })
    )
  )

  it.live.runIf(isFull)("renews once for programs that need a token at the same time", () =>
    withServer((server, places) =>
      Effect.gen(function* () {
        yield* signInBy(server, places)
        const expire = CredentialStore.use((store) =>
          Effect.flatMap(store.get(namespace, "openai"), (token) =>
            token?._tag === "OAuthToken" ? store.set(namespace, "openai", { ...token, expiresAt: 0 }) : Effect.void
          )
        )
        yield* Effect.provide(expire, credentials(places))
        const child = new URL("children/chatgpt.ts", import.meta.url).pathname
        const tokens = yield* Effect.forEach(
          [1, 2, 3],
          () =>
            Effect.promise(
              () =>
                new Promise<string>((done) => {
                  const args = ["--conditions=@effect-deepagents/source", child, places.data, server.at.issuer]
                  const running = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] })
                  let out = ""
                  running.stdout.on("data", (chunk) => (out += chunk))
                  running.on("close", () => done(out))
                })
            ),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(tokens, ["access-2", "access-2", "access-2"])
        assert.strictEqual(server.of("/api/accounts/oauth/token").length, 2)
        assert.strictEqual(Redacted.value(yield* planToken(places)), "access-2")
      })
    )
  )

  it.live("says what to do when the plan refuses, at once and without the token", () =>
    withServer((server, places) =>
      Effect.gen(function* () {
        yield* signInBy(server, places)
        const error = (status: number, code: string) => ({
          status,
          body: JSON.stringify({ error: { code, message: "no" } })
        })
        const cases: ReadonlyArray<readonly [Server["behaviour"]["error"], RegExp]> = [
          [error(429, "subscription_sharing_usage_limit_exceeded"), /limit of your ChatGPT plan[^]*settings\/usage/],
          [{ code: "subscription_sharing_usage_limit_exceeded" }, /limit of your ChatGPT plan[^]*settings\/usage/],
          [error(403, "subscription_sharing_user_not_eligible"), /Plus and Pro\. Keep a key instead/],
          [error(401, "subscription_sharing_invalid_user"), /Sign in again/],
          [{ status: 401, body: `{"detail":"not this: access-1"}` }, /Sign in again/],
          [{ status: 400, body: `{"detail":"not this: Bearer access-1"}` }, /not this/]
        ]
        for (const [one, words] of cases) {
          server.behaviour.error = one
          const before = server.of("/v1/responses").length
          const message = yield* messageOf(ask(places))
          assert.match(message, words)
          assert.notInclude(message, "access-1")
          assert.strictEqual(server.of("/v1/responses").length, before + 1)
        }
      })
    )
  )

  it.live(
    "signs out at OpenAI, keeps the registration until the second time, and reports an unconfirmed sign-out",
    () =>
      withServer((server, places) =>
        Effect.gen(function* () {
          assert.strictEqual(yield* signOut(places), undefined)
          yield* signInBy(server, places)
          assert.strictEqual(yield* signOut(places), "revoked")
          const form = Object.fromEntries(new URLSearchParams(server.of("/api/accounts/oauth/revoke")[0]?.body))
          assert.deepStrictEqual(form, {
            token: "refresh-1",
            token_type_hint: "refresh_token",
            client_id: "oaiapp_issued"
          })
          assert.strictEqual(yield* stored(places), undefined)
          yield* signInBy(server, places)
          server.behaviour.isDown = true
          assert.strictEqual(yield* signOut(places), "unconfirmed")
          server.behaviour.isDown = false
          const clientNow = Effect.map(begin(places), ({ page }) => new URL(page).searchParams.get("client_id"))
          // A key that replaces a sign-in forgets no account.
          assert.strictEqual(yield* signOut(places, false), undefined)
          assert.strictEqual(yield* clientNow, "oaiapp_issued")
          assert.strictEqual(yield* signOut(places), "unregistered")
          assert.strictEqual(yield* clientNow, "dynamic_agent_client")
        })
      )
  )

  it.live.runIf(isFull)("names the origin of the key in models and doctor; a key of the environment wins", () =>
    withServer((server, places) =>
      Effect.gen(function* () {
        const cwd = program.folder()
        const data = join(cwd, "data/deepagents")
        yield* signInBy(server, { ...places, data })
        const env = { XDG_DATA_HOME: join(cwd, "data") }
        const runs = [
          program.run(cwd, ["models"], env),
          program.run(cwd, ["models", "--json"], { ...env, OPENAI_API_KEY: "sk-env" }),
          program.run(cwd, ["doctor"], env),
          program.run(cwd, ["run", "hi"], { ...env, OPENAI_BASE_URL: "http://127.0.0.1:1" }),
          program.run(cwd, ["models", "login", "anthropic", "--chatgpt"], env),
          program.run(cwd, ["run", "hi", "-m", "openai:gpt-6-sol"], {
            ...env,
            OPENAI_API_KEY: "sk-env",
            OPENAI_BASE_URL: `${server.at.issuer}/v1`
          })
        ]
        const [models, json, doctor, elsewhere, wrong, byKey] = yield* Effect.all(runs, { concurrency: 2 })
        assert.match(models?.out ?? "", /openai:gpt-6-sol +ChatGPT plan\n/)
        assert.include(json?.out, '"key": "environment"')
        assert.match(doctor?.out ?? "", /✓ +model: key +openai: ChatGPT plan/)
        assert.strictEqual(elsewhere?.code, 3)
        assert.match(elsewhere?.err ?? "", /OPENAI_BASE_URL names another server/)
        assert.strictEqual(wrong?.code, 2)
        assert.strictEqual(byKey?.code, 0, byKey?.err)
        assert.deepStrictEqual(
          [...new Set(server.of("/v1/responses").map(({ authorization }) => authorization))],
          ["Bearer sk-env"]
        )
        for (const one of [models, json, doctor, elsewhere])
          assert.notMatch(`${one?.out}${one?.err}`, /access-1|refresh-1/)
      })
    )
  )
})
