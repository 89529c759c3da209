/** Checks each message of a connection by the JSON Schemas of the protocol, in both directions. */
import { readFileSync } from "node:fs"
import { Ajv2020 } from "ajv/dist/2020.js"

/** The schema, and the one of the draft for methods that only the draft has. */
const load = (name: string) =>
  JSON.parse(readFileSync(new URL(import.meta.resolve(`@agentclientprotocol/sdk/schema/v1/${name}`)), "utf8"))

const schemas = { acp: load("schema.json"), draft: load("schema.unstable.json") }
const ajv = new Ajv2020({ strict: false, validateFormats: false })

const requests = new Map<string, string>()
const responses = new Map<string, string>()
for (const [key, schema] of Object.entries(schemas)) {
  ajv.addSchema(schema, key)
  for (const [name, definition] of Object.entries<{ readonly "x-method"?: string }>(schema.$defs)) {
    const method = definition["x-method"]
    const known = name.endsWith("Response") ? responses : requests
    if (method !== undefined && !known.has(method)) known.set(method, `${key}#/$defs/${name}`)
  }
}

const problemOf = (name: string | undefined, value: unknown): string | undefined => {
  if (name === undefined) return undefined
  const validate = ajv.getSchema(name) ?? ajv.compile({ $ref: name })
  return validate(value) === true
    ? undefined
    : `${name}: ${ajv.errorsText(validate.errors)} in ${JSON.stringify(value).slice(0, 300)}`
}

interface Wire {
  readonly id?: string | number
  readonly method?: string
  readonly params?: { readonly update?: { readonly sessionUpdate: string; readonly status?: string } }
  readonly result?: unknown
}

/** Names a message: its method, or the kind and the status of its update. */
const nameOf = (method: string, { update }: NonNullable<Wire["params"]>): string =>
  update === undefined
    ? method
    : [update.sessionUpdate, ...(update.status === undefined ? [] : [update.status])].join(" ")

export type Side = "agent" | "client"

/** Makes the check of one connection. */
export const makeChecks = () => {
  const open: Record<Side, Map<unknown, string>> = { agent: new Map(), client: new Map() }
  const rest: Record<Side, string> = { agent: "", client: "" }
  const problems: Array<string> = []
  const methods: Array<string> = []
  const said: Array<string> = []
  let count = 0
  const check = (side: Side, line: string): void => {
    const message: Wire = JSON.parse(line)
    count += 1
    if (message.method !== undefined) {
      methods.push(`${side}:${message.method}`)
      if (side === "agent") said.push(nameOf(message.method, message.params ?? {}))
      if (message.id !== undefined) open[side].set(message.id, message.method)
      const name = requests.get(message.method)
      if (name === undefined && !message.method.startsWith("$/")) problems.push(`${side}: no method ${message.method}`)
      const problem = problemOf(name, message.params)
      if (problem !== undefined) problems.push(`${side} ${problem}`)
    } else if (message.result !== undefined) {
      const method = open[side === "agent" ? "client" : "agent"].get(message.id)
      const problem = method === undefined ? "an answer to nothing" : problemOf(responses.get(method), message.result)
      if (problem !== undefined) problems.push(`${side} ${problem}`)
    }
  }
  return {
    problems,
    methods,
    /**
     * The names of the agent's messages since the last call: its updates, and its requests. The order between the two is
     * not fixed. Repeated names are given once.
     */
    takeSaid: () => {
      const names = said.splice(0).filter((name) => name !== "available_commands_update")
      const listFields = (isUpdate: boolean) =>
        names
          .filter((name) => !name.includes("/") === isUpdate)
          .filter((name, index, all) => name !== all[index - 1])
          .join(", ")
      return { updates: listFields(true), requests: listFields(false) }
    },
    count: () => count,
    /** Takes bytes as they pass. */
    tap: (side: Side) => (bytes: Uint8Array) => {
      rest[side] += Buffer.from(bytes).toString("utf8")
      const lines = rest[side].split("\n")
      rest[side] = lines.pop() ?? ""
      for (const line of lines) if (line.trim() !== "") check(side, line)
    }
  }
}
