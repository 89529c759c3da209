/** The two tools by which a model finds and reads the resources of servers. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Sources from "../../../core/Sources.ts"
import * as Tool from "../../../core/Tool.ts"
import * as ToolError from "../../../core/ToolError.ts"
import * as ToolOutput from "../../../core/ToolOutput.ts"
import { cut } from "../../../support/text/text.ts"
import { oneLine } from "../../../support/text/untrusted.ts"
import type { Service } from "../../McpServers.ts"
import type { Resource } from "../model.ts"
import { resourceBlock } from "./results.ts"

const pageSize = 100

const lineOf = ({ description, isTemplate, mimeType, name, server, uri }: Resource): string => {
  const type = mimeType === undefined ? "" : `, ${oneLine(mimeType)}`
  const about = description === "" ? "" : `: ${cut(oneLine(description), 300)}`
  return `- ${server}: ${oneLine(uri)}${isTemplate ? " (template)" : ""} (${cut(name, 200)}${type})${about}`
}

const annotations = { readOnly: true, openWorld: true, volatile: true }

/** Makes the tools, for some servers or all. */
export const resourceTools = (
  servers: Service,
  wanted: ReadonlyArray<string> | undefined
): ReadonlyArray<Tool.Tool> => {
  const isWanted = (server: string): boolean => wanted === undefined || wanted.includes(server)
  const check = (server: string) =>
    isWanted(server) ? Effect.void : ToolError.make(`There is no server "${server}"; there are: ${wanted?.join(", ")}`)
  return [
    Tool.make("list_mcp_resources", {
      description:
        "Lists what MCP servers have to read: a server, a URI and a name each. In the URI of a template, put values in the place of the names in braces.",
      parameters: {
        server: Schema.optionalKey(Schema.String),
        page: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThan(0)))
      },
      annotations: { ...annotations, idempotent: true, paged: true },
      execute: ({ page = 1, server }) =>
        Effect.gen(function* () {
          if (server !== undefined) yield* check(server)
          const all = (yield* servers.resources(server)).filter((one) => isWanted(one.server))
          const rows = all.slice((page - 1) * pageSize, page * pageSize)
          if (rows.length === 0) return page === 1 ? "There is nothing to read." : `There are ${all.length} in all.`
          const more =
            all.length > page * pageSize ? `\nThere are ${all.length} in all: page ${page + 1} has more.` : ""
          return `${rows.map(lineOf).join("\n")}${more}`
        })
    }),
    Tool.make("read_mcp_resource", {
      description: "Reads a resource of an MCP server, by its URI",
      parameters: { server: Schema.String, uri: Schema.String },
      annotations,
      execute: ({ server, uri }) =>
        Effect.gen(function* () {
          yield* check(server)
          const contents = yield* servers.read(server, uri)
          return ToolOutput.make(contents.map(resourceBlock), {
            sources: contents.map((content) => Sources.make({ url: content.uri }))
          })
        })
    })
  ]
}
