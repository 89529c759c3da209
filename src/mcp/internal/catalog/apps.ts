/** Interfaces of tools (MCP Apps): their addresses in the metadata of tools, and their pages. */
import type { Client, Tool } from "@modelcontextprotocol/client"
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import { isObject } from "../../../core/Json.ts"
import { defined } from "../../../support/json/defined.ts"
import { McpError } from "../../McpError.ts"
import type { App, ServerTool } from "../model.ts"
import type { Session } from "../wire/session.ts"

const uiOf = (meta: unknown) => (isObject(meta) && isObject(meta["ui"]) ? meta["ui"] : undefined)

const isCaller = (value: unknown): value is "app" | "model" => value === "app" || value === "model"

/** Reads the interface and the callers of a tool from its metadata. */
export const appOf = ({ _meta }: Tool): Pick<ServerTool, "app" | "callers"> => {
  const { resourceUri: app, visibility } = uiOf(_meta) ?? {}
  return defined({
    app: typeof app === "string" && app.startsWith("ui://") && app.length <= 2_000 ? app : undefined,
    callers: Array.isArray(visibility) ? visibility.filter(isCaller) : undefined
  })
}

/** Origins as a policy has them: secure ones, with a name. Everything else is left out. */
const origin = /^(?:https|wss):\/\/(?:\*\.)?[\da-z-]+(?:\.[\da-z-]+)+(?::\d{1,5})?$/i

const most = { html: 4_000_000, origins: 20 }

const originsIn = (csp: unknown, key: string): ReadonlyArray<string> => {
  const listed: unknown = isObject(csp) ? csp[key] : undefined
  return (Array.isArray(listed) ? listed : [])
    .filter((one): one is string => typeof one === "string" && one.length <= 200 && origin.test(one))
    .slice(0, most.origins)
}

const htmlOf = (content: { readonly text?: unknown; readonly blob?: unknown }): string | undefined => {
  if (typeof content.text === "string") return content.text
  const bytes = typeof content.blob === "string" ? Base64.decodeString(content.blob) : undefined
  return bytes === undefined ? undefined : Result.getOrUndefined(bytes)
}

/** The metadata of a resource in the list of its server. */
const listedMeta = async (client: Client, uri: string, signal: AbortSignal): Promise<unknown> => {
  const { resources } = await client.listResources({}, { signal }).catch(() => ({ resources: [] }))
  return resources.find((one) => one.uri === uri)?._meta
}

/** Reads the page of an interface. */
export const readApp = Effect.fnUntraced(function* (
  server: string,
  { request }: Session,
  uri: string
): Effect.fn.Return<App, McpError> {
  const { content, meta } = yield* request(async (client, signal) => {
    const { contents } = await client.readResource({ uri }, { signal, cacheMode: "refresh" })
    const content = contents.find((one) => one.uri === uri)
    const meta = uiOf(content?._meta) ?? uiOf(await listedMeta(client, uri, signal))
    return { content, meta }
  })
  const type = content?.mimeType?.replaceAll(/\s/g, "").toLowerCase()
  const html = content === undefined ? undefined : htmlOf(content)
  if (html === undefined || type !== "text/html;profile=mcp-app" || html.length > most.html) {
    const message = `the MCP server "${server}" has no interface at this address, or one of another form; see its documentation`
    return yield* new McpError({ server, reason: "Invalid", message })
  }
  const csp = meta?.["csp"]
  return { html, connect: originsIn(csp, "connectDomains"), resources: originsIn(csp, "resourceDomains") }
})
