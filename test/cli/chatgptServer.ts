/** OpenAI's sign-in for programs and its API, as the documentation describes them, on this machine. */
import { createPublicKey, generateKeyPairSync, sign } from "node:crypto"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { Effect } from "effect"

const keys = generateKeyPairSync("rsa", { modulusLength: 2048 })
const otherKeys = generateKeyPairSync("rsa", { modulusLength: 2048 })

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url")

const planScopes = "openid profile email offline_access resource.invoke chatgpt.tokens.use.direct"

/** A test's changes of the server. */
interface Behaviour {
  /** Claims of the next ID tokens. */
  claims: { readonly [claim: string]: unknown }
  /** True if another key signs. */
  isForged: boolean
  scope: string
  /** The metadata. */
  metadata: { readonly [name: string]: unknown }
  /** The answers of a model: a status with an error, or a text that a stream fails with. */
  error: { readonly status: number; readonly body: string } | { readonly code: string } | undefined
  /** True if refresh tokens are revoked. */
  isRevoked: boolean
  isDown: boolean
  calls: boolean
}

const eventsOf = (items: ReadonlyArray<object>): ReadonlyArray<object> => [
  ...items.map((item, output_index) => ({ type: "response.output_item.done", output_index, item })),
  // The last event may leave out streamed parts.
  { type: "response.completed", response: { id: "resp_1", model: "gpt-6-sol", status: "completed", output: [] } }
]

const sayText = (text: string) => [
  { type: "message", id: "msg_1", role: "assistant", content: [{ type: "output_text", text, annotations: [] }] }
]

const called = [
  { type: "function_call", id: "fc_1", call_id: "call_1", name: "weather", arguments: "{}", status: "completed" }
]

export const openAi = Effect.acquireRelease(
  Effect.callback<{ readonly server: http.Server; readonly all: ReturnType<typeof make> }>((resume) => {
    const all = make()
    const server = http.createServer(all.handle)
    server.listen(0, "127.0.0.1", () => {
      all.at.issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      resume(Effect.succeed({ server, all }))
    })
  }),
  ({ server }) =>
    Effect.sync(() => {
      server.closeAllConnections()
      server.close()
    })
).pipe(Effect.map(({ all }) => all))

const make = () => {
  const at = { issuer: "" }
  const behaviour: Behaviour = {
    claims: {},
    isForged: false,
    scope: planScopes,
    metadata: {},
    error: undefined,
    isRevoked: false,
    isDown: false,
    calls: false
  }
  const seen: Array<{ readonly path: string; readonly body: string; readonly authorization: string | undefined }> = []
  const codes = new Map<string, { readonly nonce: string; readonly client: string }>()
  const used = new Set<string>()
  let count = 0

  const idToken = (client: string, nonce: string): string => {
    const now = Math.floor(Date.now() / 1000)
    const claims = {
      iss: at.issuer,
      aud: [client],
      sub: "user-ada",
      iat: now,
      exp: now + 3600,
      nonce,
      ...behaviour.claims
    }
    const text = `${part({ alg: "RS256", kid: "one" })}.${part(claims)}`
    const { privateKey } = behaviour.isForged ? otherKeys : keys
    return `${text}.${sign("sha256", Buffer.from(text), privateKey).toString("base64url")}`
  }

  const tokensOf = (client: string, nonce: string) => {
    count++
    return {
      access_token: `access-${count}`,
      refresh_token: `refresh-${count}`,
      id_token: idToken(client, nonce),
      token_type: "Bearer",
      expires_in: 3600,
      scope: behaviour.scope,
      earliest_refresh_at: 0
    }
  }

  /** The page: a person allows the sign-in, and the browser goes back. */
  const allow = (page: string, change: (back: URL) => void = () => {}): URL => {
    const { searchParams } = new URL(page)
    const asked = searchParams.get("client_id") ?? ""
    const client = asked === "dynamic_agent_client" ? "oaiapp_issued" : asked
    const code = `code-${codes.size + 1}`
    codes.set(code, { nonce: searchParams.get("nonce") ?? "", client })
    const back = new URL(searchParams.get("redirect_uri") ?? "")
    const state = searchParams.get("state") ?? ""
    for (const [name, value] of Object.entries({ code, state, client_id: client, scope: behaviour.scope })) {
      back.searchParams.set(name, value)
    }
    change(back)
    return back
  }

  const token = (form: URLSearchParams): readonly [number, object] => {
    if (behaviour.isDown) return [503, { error: "temporarily_unavailable" }]
    if (form.get("grant_type") === "refresh_token") {
      const old = form.get("refresh_token") ?? ""
      if (behaviour.isRevoked) return [400, { error: { code: "refresh_token_invalidated", message: old } }]
      if (used.has(old)) return [400, { error: "invalid_grant", error_description: "refresh_token_reused" }]
      used.add(old)
      return [200, tokensOf(form.get("client_id") ?? "", "")]
    }
    const issued = codes.get(form.get("code") ?? "")
    codes.delete(form.get("code") ?? "")
    return issued === undefined || issued.client !== form.get("client_id") || form.get("code_verifier") === null
      ? [400, { error: "invalid_grant" }]
      : [200, tokensOf(issued.client, issued.nonce)]
  }

  const respond = (response: http.ServerResponse): void => {
    const { error } = behaviour
    if (error !== undefined && "status" in error) {
      response.writeHead(error.status, { "content-type": "application/json" }).end(error.body)
      return
    }
    const isFirst = behaviour.calls && seen.filter(({ path }) => path === "/v1/responses").length === 1
    const events =
      error === undefined
        ? eventsOf(isFirst ? called : sayText("It is sunny."))
        : [{ type: "response.failed", response: { status: "failed", error: { code: error.code, message: "no" } } }]
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.end(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""))
  }

  const handle = (request: http.IncomingMessage, response: http.ServerResponse): void => {
    let body = ""
    request.on("data", (chunk) => (body += chunk))
    request.on("end", () => {
      const path = request.url ?? ""
      seen.push({ path, body, authorization: request.headers.authorization })
      const json = (status: number, value: object) =>
        response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value))
      switch (path) {
        case "/.well-known/openid-configuration":
          return json(200, {
            issuer: at.issuer,
            jwks_uri: `${at.issuer}/.well-known/jwks.json`,
            revocation_endpoint: `${at.issuer}/api/accounts/oauth/revoke`,
            id_token_signing_alg_values_supported: ["RS256"],
            code_challenge_methods_supported: ["S256"],
            ...behaviour.metadata
          })
        case "/.well-known/jwks.json":
          return json(200, {
            keys: [
              { ...createPublicKey(keys.privateKey).export({ format: "jwk" }), kid: "one", alg: "RS256", use: "sig" }
            ]
          })
        case "/api/accounts/oauth/token":
          return json(...token(new URLSearchParams(body)))
        case "/api/accounts/oauth/revoke":
          return behaviour.isDown ? json(503, {}) : response.writeHead(200).end()
        case "/v1/models":
          return json(200, {
            models: [
              { slug: "gpt-6-sol", display_name: "Sol", visibility: "list" },
              { slug: "gpt-hidden", display_name: "Hidden", visibility: "hide" }
            ]
          })
        case "/v1/responses":
          return respond(response)
        default:
          return json(404, {})
      }
    })
  }
  const of = (path: string) => seen.filter((one) => one.path === path)
  return { at, behaviour, seen, of, allow, handle }
}
