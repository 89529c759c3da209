/** The rules of Taint and HiddenResults: the sources of outside text, the deeds, and their addresses. */
import type * as AgentState from "../../../core/AgentState.ts"
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import * as Message from "../../../core/Message.ts"
import type { PreparedCall } from "../../../core/Middleware.ts"
import type { Run } from "../../../core/Run.ts"
import { normaliseName } from "../../../support/text/names.ts"

/** Names that a developer gives. Each list is explained at `Taint.Options`. */
export interface Words {
  readonly strict?: boolean | undefined
  readonly untrusted?: ReadonlyArray<string> | undefined
  readonly trusted?: ReadonlyArray<string> | undefined
  readonly acts?: ReadonlyArray<string> | undefined
  readonly harmless?: ReadonlyArray<string> | undefined
  readonly hosts?: ReadonlyArray<string> | undefined
  readonly servers?: ReadonlyArray<string> | undefined
}

/** The part of a tool that rules are for. */
export type RuledTool = Pick<PreparedCall, "name" | "annotations">

/**
 * The words, compiled. Lists that restrict (`untrusted`, `acts`) match however a name is spelt. Lists that loosen match
 * the exact name.
 */
export interface Rules {
  readonly isStrict: boolean
  readonly untrusted: ReadonlySet<string>
  readonly trusted: ReadonlySet<string>
  readonly acts: ReadonlySet<string>
  readonly harmless: ReadonlySet<string>
  readonly hosts: ReadonlyArray<string>
  readonly servers: ReadonlySet<string>
}

const keysOf = (names: ReadonlyArray<string> = []): ReadonlySet<string> => new Set(names.map(normaliseName))

export const compile = ({ acts, harmless, hosts = [], servers, strict, trusted, untrusted }: Words): Rules => ({
  isStrict: strict === true,
  untrusted: keysOf(untrusted),
  trusted: new Set(trusted),
  acts: keysOf(acts),
  harmless: new Set(harmless),
  hosts: hosts.map((host) => host.toLowerCase()),
  servers: new Set(servers)
})

/** True for a tool of an MCP server. A name with a server's prefix counts, whoever offers it. */
export const isServers = ({ annotations, name }: RuledTool): boolean =>
  annotations.server !== undefined || name.includes("__")

/** Tells whether a missing annotation of a tool counts as the worse answer. */
export const isStrictOn = ({ isStrict, servers }: Rules, { annotations }: RuledTool): boolean =>
  isStrict && (annotations.server === undefined || !servers.has(annotations.server))

export const isOutside = (tool: RuledTool): boolean => tool.annotations.openWorld === true || isServers(tool)

/** Tells whether a list that loosens names this tool. A server's tool is named with its server's prefix. */
export const isNamed = (names: { readonly has: (name: string) => boolean }, tool: RuledTool): boolean =>
  names.has(tool.name) && (tool.annotations.server === undefined || tool.name.includes("__"))

/** Tells whether results of a tool hold text that nobody vouches for. */
export const isSource = (rules: Rules, tool: RuledTool): boolean => {
  if (rules.untrusted.has(normaliseName(tool.name))) return true
  if (isNamed(rules.trusted, tool)) return false
  const { openWorld, untrusted } = tool.annotations
  return isOutside(tool) || untrusted === true || (isStrictOn(rules, tool) && openWorld !== false)
}

/** Tells whether calls of a tool change or send something. */
export const isDeed = (rules: Rules, tool: RuledTool): boolean => {
  if (rules.acts.has(normaliseName(tool.name))) return true
  if (isNamed(rules.harmless, tool)) return false
  const { destructive, lasting, openWorld, readOnly } = tool.annotations
  if (destructive === true || lasting === true) return true
  if (!isStrictOn(rules, tool)) return isOutside(tool) && readOnly !== true
  // A server's word on its own tools counts for nothing.
  if (isServers(tool)) return true
  return readOnly !== true && (destructive !== false || openWorld !== false)
}

const addressNames = new Set(
  ["url", "urls", "href", "link", "host", "hostname", "domain", "website", "endpoint"].map(normaliseName)
)

const looksLikeAddress = (text: string): boolean => /^\s*(?:[a-z][a-z\d+.-]*:|\/\/|www\.)/i.test(text)

/** The texts in a value, each with the name of the field that it is in. */
const textsIn = (value: Json, key: string): ReadonlyArray<readonly [key: string, text: string]> => {
  if (typeof value === "string") return value === "" ? [] : [[key, value]]
  if (Array.isArray(value)) return value.flatMap((one) => textsIn(one, key))
  return isObject(value) ? Object.entries(value).flatMap(([name, one]) => textsIn(one, name)) : []
}

/** The host of an address; `undefined` for other text. */
const hostOf = (text: string): string | undefined => {
  const link = text.trim()
  const whole = link.startsWith("//") ? `https:${link}` : link
  const address = /^[a-z][a-z\d+.-]*:\/\//i.test(whole) ? whole : `https://${whole}`
  const host = URL.canParse(address) ? new URL(address).hostname.toLowerCase() : ""
  return host === "" ? undefined : host
}

const quoted = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")

/** Tells whether words name a host: by itself or in a URL, and not as the end of a mail address. */
const namesHost = (words: string, host: string): boolean =>
  host.includes(".") && new RegExp(`(?<![\\w@.-])${quoted(host)}(?![\\w@-]|\\.\\w)`, "i").test(words)

const isKnown = ({ hosts }: Rules, words: () => string, address: string): boolean => {
  const host = hostOf(address)
  if (host === undefined) return false
  const isListed = hosts.some((one) => (one.startsWith("*.") ? host.endsWith(one.slice(1)) : host === one))
  return isListed || namesHost(words(), host)
}

/** Tells whether words have a text in them, as a whole. */
export const says = (words: string, text: string): boolean =>
  text.trim() !== "" && new RegExp(`(?<![\\w.@-])${quoted(text.trim())}(?![\\w@-]|\\.\\w)`, "iu").test(words)

/**
 * The addresses that a call opens though neither the developer's list nor the user's words name their host. Of a tool
 * that does not say which arguments are addresses, those count whose name or text looks like one. Strict rules count
 * every text that the user did not say.
 */
export const strangeAddresses = (
  rules: Rules,
  { annotations, arguments: args, ...tool }: RuledTool & { readonly arguments: JsonObject },
  words: () => string
): ReadonlyArray<string> => {
  const whole = { ...tool, annotations }
  const isStrict = isStrictOn(rules, whole)
  const isGoingOut = isOutside(whole) || (isStrict && annotations.openWorld !== false)
  if (!isGoingOut || isNamed(rules.harmless, whole)) return []
  const { addresses } = annotations
  const texts =
    addresses === undefined
      ? textsIn(args, "").filter(([key, text]) =>
          isStrict ? !says(words(), text) : addressNames.has(normaliseName(key)) || looksLikeAddress(text)
        )
      : addresses.flatMap((name) => (Object.hasOwn(args, name) ? textsIn(args[name] ?? null, name) : []))
  return texts.flatMap(([, text]) => (isKnown(rules, words, text) ? [] : [text]))
}

/**
 * The user's words in a run: the messages of people. A sub-agent and a background task have none, since a model wrote
 * their task.
 */
export const wordsOf = (run: Run, outer: AgentState.Store | undefined): string =>
  run.depth > 0 || outer !== undefined
    ? ""
    : run.messages
        .flatMap((message) => (message.role === "human" && message.source === undefined ? [Message.text(message)] : []))
        .join("\n")

/** Says which name of a list no tool has. A list that loosens needs the exact name. */
export const misnamed = (
  { acts = [], harmless = [], trusted = [], untrusted = [] }: Words,
  more: ReadonlyArray<string>,
  findUnknown: (names: ReadonlyArray<string>, tools: ReadonlySet<string>) => string | undefined,
  reach: ReadonlySet<string>
): string | undefined => {
  // Tools of servers come later, and have their name with the server's.
  const own = (names: ReadonlyArray<string>) => names.filter((one) => !one.includes("__"))
  const problem = findUnknown(own([...untrusted, ...acts, ...trusted, ...harmless, ...more]), reach)
  if (problem !== undefined) return problem
  const inexact = own([...trusted, ...harmless]).find((one) => !reach.has(one))
  return inexact === undefined
    ? undefined
    : `${JSON.stringify(inexact)} is to be trusted, or harmless, and the tool is spelt otherwise; give its exact name`
}
