/** Offers files of a backend as resources, and skills as prompts. */
import * as McpSchema from "effect/ai/McpSchema"
import type { McpServer } from "effect/ai/McpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { Backend, type Service } from "../../../core/Backend.ts"
import * as Skills from "../../../middleware/Skills.ts"
import { encodePart } from "../../../support/text/percent.ts"
import { cut } from "../../../support/text/text.ts"

const scheme = "backend://"
const mostListed = 1000

const uriOf = (path: string): string => scheme + path.split("/").map(encodePart).join("/")

const pathOf = (uri: string): string | undefined =>
  uri.startsWith(`${scheme}/`) && !/%(?![0-9a-f]{2})/i.test(uri) ? decode(uri.slice(scheme.length)) : undefined

const decode = (text: string): string => text.split("/").map(decodeURIComponent).join("/")

const utf8 = new TextDecoder("utf-8", { fatal: false })

/** Decodes bytes as text. Returns `undefined` for binary data. */
const textOf = (bytes: Uint8Array): string | undefined => {
  const text = bytes.includes(0) ? undefined : utf8.decode(bytes)
  return text?.includes("\u{fffd}") === true ? undefined : text
}

const none = Context.empty()

/** Offers all files by address, and the present ones in a list. Returns an effect that updates the list. */
export const offerFiles = Effect.fnUntraced(function* (server: McpServer["Service"], backend: Service) {
  const readUri = Effect.fnUntraced(function* (uri: string) {
    const path = pathOf(uri)
    if (path === undefined)
      return yield* new McpSchema.InvalidParams({ message: `${cut(uri, 200)} is no address of a file here` })
    const [file] = yield* backend.download([path])
    if (file?.ok !== true)
      return yield* new McpSchema.InvalidParams({ message: `there is no file ${cut(path, 200)} to be read` })
    const text = textOf(file.value)
    return {
      contents: [text === undefined ? { uri, blob: new Uint8Array(file.value) } : { uri, mimeType: "text/plain", text }]
    }
  })
  yield* server.addResourceTemplate({
    template: new McpSchema.ResourceTemplate({
      uriTemplate: `${scheme}/{+path}`,
      name: "file",
      description: "A file of the agent, by its path"
    }),
    annotations: none,
    routerPath: `${scheme.replace(":", "::")}/*`,
    completions: {},
    handle: (uri) => readUri(uri)
  })
  const listed = new Set<string>()
  return Effect.gen(function* () {
    const { entries } = yield* backend.glob({ pattern: "**/*", path: "/", limit: mostListed })
    for (const { kind, path } of entries) {
      if (kind !== "file" || listed.has(path) || listed.size >= mostListed) continue
      listed.add(path)
      const uri = uriOf(path)
      yield* server.addResource({
        resource: new McpSchema.Resource({ uri, name: path }),
        annotations: none,
        handle: Effect.catchTag(
          readUri(uri),
          "InvalidParams",
          ({ message }) => new McpSchema.InternalError({ message })
        )
      })
    }
  }).pipe(Effect.catch((error) => Effect.logWarning("The files of an MCP server could not be listed", error)))
})

/** Offers skills as prompts: the text of the skill, with a task. */
export const offerSkills = Effect.fnUntraced(function* (
  server: McpServer["Service"],
  backend: Service,
  sources: ReadonlyArray<string>
) {
  const { problems, skills } = yield* Effect.provideService(Skills.scan(sources), Backend, backend)
  for (const { field, path, problem } of problems) yield* Effect.logWarning(`${path}: ${field}: ${problem}`)
  for (const { description, name, path } of skills) {
    yield* server.addPrompt({
      prompt: new McpSchema.Prompt({
        name,
        description,
        arguments: [{ name: "task", description: "the task to use it for", required: false }]
      }),
      annotations: none,
      completions: {},
      handle: Effect.fnUntraced(function* ({ task }) {
        const [file] = yield* backend.download([path])
        const text = file?.ok === true ? textOf(file.value) : undefined
        if (text === undefined) return yield* new McpSchema.InternalError({ message: `${path} could not be read` })
        const body = task === undefined || task === "" ? text : `${text}\n\n${task}`
        return new McpSchema.GetPromptResult({
          description,
          messages: [{ role: "user", content: { type: "text", text: body } }]
        })
      })
    })
  }
})
