/** OpenAI's own description of its API (`openapi.json` of github.com/openai/openai-openapi), as a check of values. */
import { createRequire } from "node:module"
import type { Api, Fixture } from "./fixtures.ts"
import { comparable, itemsOf } from "./requests.ts"

type Validate = ((value: unknown) => boolean) & {
  readonly errors?: ReadonlyArray<{ readonly instancePath: string; readonly message?: string }> | null
}

/** Checks a value against a schema of the document, and returns what is wrong. */
export type Check = (schema: string, value: unknown) => string | undefined

/** Makes the check of a document, which is JSON. */
export const makeCheck = (document: string): Check => {
  const Ajv = createRequire(import.meta.url)("ajv/dist/2020.js").default as new (options: object) => {
    readonly addSchema: (schema: object, key: string) => void
    readonly getSchema: (ref: string) => Validate | undefined
  }
  const ajv = new Ajv({ strict: false, validateFormats: false, logger: false })
  // What is left in it of an older version of OpenAPI.
  const read = JSON.parse(document, (_, value: { readonly nullable?: unknown } | null) => {
    if (typeof value !== "object" || value?.nullable !== true) return value
    const { nullable: _nullable, ...schema } = value
    return { anyOf: [schema, { type: "null" }] }
  }) as object
  ajv.addSchema(read, "openai")
  return (schema, value) => {
    const validate = ajv.getSchema(`openai#/components/schemas/${schema}`)
    if (validate === undefined) return `the document has no schema ${schema}`
    if (validate(value)) return undefined
    const problems = validate.errors?.slice(0, 4).map(({ instancePath, message }) => `${instancePath} ${message}`)
    return `${schema}: ${problems?.join("; ")}, in ${JSON.stringify(value).slice(0, 300)}`
  }
}

const schemas: {
  readonly [api in Api]?: { readonly event: string; readonly whole: string; readonly request: string }
} = {
  responses: { event: "ResponseStreamEvent", whole: "Response", request: "CreateResponse" },
  chat: {
    event: "CreateChatCompletionStreamResponse",
    whole: "CreateChatCompletionResponse",
    request: "CreateChatCompletionRequest"
  }
}

/** Tells the first thing in a recorded answer that the document does not have: a newer API, or another server's. */
export const strangeIn = (check: Check, { api, events, isStream }: Fixture): string | undefined => {
  const known = schemas[api]
  if (known === undefined) return undefined
  for (const event of events) {
    const problem = check(isStream ? known.event : known.whole, event)
    if (problem !== undefined) return problem
  }
  return undefined
}

/** Items in which the document contradicts itself. */
const named: ReadonlySet<string> = new Set([
  // It requires `call_id`, which it does not describe, and the call's `id`; OpenAI's guide sends `call_id` alone.
  "local_shell_call_output",
  // It requires `request_id`, which it does not describe.
  "mcp_approval_response"
])

// Requests are looked into as they are.
// oxlint-disable-next-line typescript/no-explicit-any
type Any = any

/** The parts of a request that are ours: items that go back as they came are the server's own. */
const ownPart = ({ api, events }: Fixture, body: Any): Any => {
  if (api === "chat") return { ...body, messages: body.messages.filter(({ role }: Any) => role !== "assistant") }
  if (!Array.isArray(body.input)) return body
  const came = new Set(itemsOf(events).map(comparable))
  return { ...body, input: body.input.filter((item: Any) => !named.has(item.type) && !came.has(comparable(item))) }
}

/** Tells what is wrong with a request. */
export const requestProblem = (check: Check, fixture: Fixture, body: unknown): string | undefined => {
  const known = schemas[fixture.api]
  if (known === undefined) return undefined
  return check(known.request, body) === undefined ? undefined : check(known.request, ownPart(fixture, body))
}
