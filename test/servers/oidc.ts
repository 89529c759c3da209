/**
 * A real authorisation server on loopback, and a browser without a window that signs in there.
 */
import { createServer } from "node:http"
import { Effect, type Scope } from "effect"
import { Provider, type Configuration, type KoaContextWithOIDC } from "oidc-provider"

export interface Oidc {
  readonly issuer: string
  /** Requests by method and path, as they came. */
  readonly requests: Array<string>
}

const signIn = async (provider: Provider, context: KoaContextWithOIDC) => {
  const details = await provider.interactionDetails(context.req, context.res)
  const accountId = "ada"
  if (details.prompt.name === "login") {
    return provider.interactionFinished(context.req, context.res, { login: { accountId } })
  }
  const grant =
    details.grantId === undefined
      ? new provider.Grant({ accountId, clientId: String(details.params["client_id"]) })
      : await provider.Grant.find(details.grantId)
  if (grant === undefined) throw new Error("there is no such grant")
  const { missingOIDCScope, missingResourceScopes } = details.prompt.details as {
    readonly missingOIDCScope?: ReadonlyArray<string>
    readonly missingResourceScopes?: { readonly [resource: string]: ReadonlyArray<string> }
  }
  if (missingOIDCScope !== undefined) grant.addOIDCScope(missingOIDCScope.join(" "))
  for (const [resource, scopes] of Object.entries(missingResourceScopes ?? {})) {
    grant.addResourceScope(resource, scopes.join(" "))
  }
  return provider.interactionFinished(context.req, context.res, { consent: { grantId: await grant.save() } })
}

/** The server, until the scope is closed. */
export const oidc = (configure: (issuer: string) => Configuration): Effect.Effect<Oidc, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const requests: Array<string> = []
      const server = createServer()
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      const address = server.address()
      if (address === null || typeof address === "string") throw new Error("there is no port")
      const issuer = `http://127.0.0.1:${address.port}`
      // It says at length that it is not made for plain HTTP.
      const { info, warn } = console
      console.info = console.warn = () => {}
      const provider = new Provider(issuer, {
        pkce: { required: () => true },
        findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
        ttl: {
          Interaction: 600,
          Session: 600,
          Grant: 600,
          IdToken: 600,
          DeviceCode: 600,
          AccessToken: 600,
          RefreshToken: 600
        },
        issueRefreshToken: async () => true,
        interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
        ...configure(issuer)
      })
      console.info = info
      console.warn = warn
      provider.use(async (context, next) => {
        requests.push(`${context.method} ${context.path}`)
        await (context.path.startsWith("/interaction/") ? signIn(provider, context as KoaContextWithOIDC) : next())
      })
      const handle = provider.callback()
      server.on("request", (request, response) => void handle(request, response))
      return { issuer, requests, server }
    }),
    ({ server }) =>
      Effect.promise(async () => {
        server.closeAllConnections()
        await new Promise((resolve) => server.close(resolve))
      })
  )

/** Follows redirects with cookies as a browser does, up to the first address that `isEnd`, which is not opened. */
export const browse = (url: string, isEnd: (url: URL) => boolean): Effect.Effect<string> =>
  Effect.promise(async () => {
    const cookies = new Map<string, string>()
    let next = url
    for (let hop = 0; hop < 20; hop++) {
      if (isEnd(new URL(next))) return next
      const response = await fetch(next, {
        redirect: "manual",
        headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; ") }
      })
      for (const cookie of response.headers.getSetCookie()) {
        const [name = "", value = ""] = (cookie.split(";")[0] ?? "").split("=")
        if (value === "") cookies.delete(name)
        else cookies.set(name, value)
      }
      const location = response.headers.get("location")
      if (location === null) throw new Error(`${next} answered ${response.status}: ${await response.text()}`)
      await response.body?.cancel()
      next = new URL(location, next).href
    }
    throw new Error("too many redirects")
  })

/** Types a device's code in, and confirms it. */
export const confirmDevice = (url: string): Effect.Effect<void> =>
  Effect.promise(async () => {
    const cookies = new Map<string, string>()
    const request = async (to: string, body?: URLSearchParams): Promise<string> => {
      const response = await fetch(to, {
        redirect: "manual",
        ...(body === undefined ? {} : { method: "POST", body }),
        headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; ") }
      })
      for (const cookie of response.headers.getSetCookie()) {
        const [name = "", value = ""] = (cookie.split(";")[0] ?? "").split("=")
        if (value === "") cookies.delete(name)
        else cookies.set(name, value)
      }
      const location = response.headers.get("location")
      return location === null ? response.text() : request(new URL(location, to).href)
    }
    const fields = (html: string): URLSearchParams =>
      new URLSearchParams(
        [...html.matchAll(/<input[^>]*type="hidden"[^>]*name="([^"]+)"[^>]*value="([^"]*)"/g)].map(
          ([, name = "", value = ""]): [string, string] => [name, value]
        )
      )
    const page = await request(url)
    const form = fields(page)
    if (!form.has("confirm")) form.set("confirm", "yes")
    await request(url.split("?")[0] ?? url, form)
  })
