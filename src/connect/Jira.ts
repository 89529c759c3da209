/**
 * Jira: issues, their states and comments, by version 3 of its API.
 *
 * The scopes of an OAuth token: `read:jira-work`, and `write:jira-work` for changes.
 */
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { readOptions } from "../core/schema/invalid.ts"
import { check } from "../support/options/check.ts"
import { cut } from "../support/text/text.ts"
import { type SiteOptions, show } from "./internal/connectors/atlassian.ts"
import { at, limitField, makeConnector, optionalText, text } from "./internal/connectors/client.ts"
import * as shapes from "./internal/shapes.ts"

export type { SiteOptions } from "./internal/connectors/atlassian.ts"

const Named = Schema.Struct({ name: Schema.String })
const Person = Schema.Struct({
  accountId: Schema.optionalKey(Schema.String),
  displayName: Schema.optionalKey(Schema.String)
})

const Wire = Schema.Struct({
  id: Schema.String,
  key: Schema.String,
  fields: Schema.Struct({
    summary: Schema.optionalKey(Schema.NullOr(Schema.String)),
    status: Schema.optionalKey(Schema.NullOr(Named)),
    issuetype: Schema.optionalKey(Schema.NullOr(Named)),
    priority: Schema.optionalKey(Schema.NullOr(Named)),
    assignee: Schema.optionalKey(Schema.NullOr(Person)),
    reporter: Schema.optionalKey(Schema.NullOr(Person)),
    updated: Schema.optionalKey(Schema.String),
    description: Schema.optionalKey(Schema.Unknown)
  })
})

const Transition = Schema.Struct({ id: Schema.String, name: Schema.String, to: Schema.optionalKey(Named) })
const Created = Schema.Struct({ id: Schema.String, key: Schema.String })

/** Renders a document of Atlassian's format (ADF) as text, a paragraph on each line. */
const textOf = (document: unknown): string => {
  let output = ""
  const todo: Array<unknown> = [document]
  for (let node = todo.pop(); node !== undefined && output.length < 20_000; node = todo.pop()) {
    if (typeof node === "string") output += node
    if (!Predicate.isObject(node)) continue
    const { attrs, content, text: own, type } = node
    if (typeof own === "string") output += own
    // People, emojis and links are attributes.
    const label = Predicate.isObject(attrs) ? (attrs["text"] ?? attrs["url"] ?? attrs["shortName"]) : undefined
    if (typeof label === "string") output += label
    if (type === "hardBreak") output += "\n"
    if (/^(?:paragraph|heading|codeBlock|tableRow|rule)$/.test(typeof type === "string" ? type : "")) todo.push("\n")
    if (Array.isArray(content)) for (let index = content.length - 1; index >= 0; index--) todo.push(content[index])
  }
  return cut(output.trim(), 20_000)
}

/** Makes a document of Atlassian's format, in which no paragraph may be empty. */
const documentOf = (body: string) => ({
  type: "doc",
  version: 1,
  content: body
    .split(/[\r\n]+/)
    .filter((line) => line !== "")
    .map((line) => ({ type: "paragraph", content: [{ type: "text", text: line }] }))
})

const issueOf = ({ fields, id, key }: typeof Wire.Type) => ({
  id,
  key,
  summary: fields.summary ?? "",
  status: fields.status?.name ?? "",
  type: fields.issuetype?.name ?? "",
  priority: fields.priority?.name ?? "",
  assignee: fields.assignee?.displayName ?? "",
  reporter: fields.reporter?.displayName ?? "",
  updated: fields.updated ?? "",
  description: textOf(fields.description)
})

const fields = ["summary", "status", "issuetype", "priority", "assignee", "reporter", "updated", "description"]

const key = text("The key of an issue, such as ENG-12")

const checkTools = check(shapes.jiraTools)

/** Makes the tools of Jira. */
export const tools = <R = never>(options: SiteOptions<R>) => {
  const [{ baseUrl, connection }, problem] = readOptions(checkTools, options)
  const { change, list, read, submit } = makeConnector({
    problem,
    service: "Jira",
    connection,
    show,
    baseUrl,
    root: "/rest/api/3"
  })
  return [
    list({
      name: "jira_search",
      about: "Finds issues in Jira.",
      parameters: { jql: text('JQL, such as project = ENG AND status = "To Do"'), limit: limitField },
      ask: ({ jql }, nextPageToken) => ({ path: "/search/jql", query: { jql, fields, maxResults: 50, nextPageToken } }),
      answer: Schema.Struct({
        issues: Schema.Array(Wire),
        nextPageToken: Schema.optionalKey(Schema.NullOr(Schema.String))
      }),
      page: ({ issues, nextPageToken: next }) => ({ items: issues.map(issueOf), next })
    }),
    read({
      name: "jira_get_issue",
      about: "Reads an issue of Jira.",
      parameters: { key },
      ask: (args) => ({ path: at`/issue/${args.key}`, query: { fields } }),
      answer: Wire,
      show: issueOf
    }),
    read({
      name: "jira_list_transitions",
      about: "Lists the states that an issue can be brought to.",
      parameters: { key },
      ask: (args) => ({ path: at`/issue/${args.key}/transitions` }),
      answer: Schema.Struct({ transitions: Schema.Array(Transition) }),
      show: ({ transitions }) => transitions
    }),
    change({
      name: "jira_create_issue",
      about: "Makes an issue in Jira.",
      parameters: {
        project: text("The key of its project"),
        summary: Schema.String,
        type: text("Such as Task, Bug or Story"),
        description: optionalText("Plain text")
      },
      ask: ({ description, project, summary, type }) => ({
        method: "POST",
        path: "/issue",
        body: {
          fields: {
            project: { key: project },
            summary,
            issuetype: { name: type },
            ...(description === undefined ? {} : { description: documentOf(description) })
          }
        }
      }),
      answer: Created
    }),
    submit({
      name: "jira_transition_issue",
      about: "Brings an issue to another state.",
      parameters: { key, transitionId: text("As jira_list_transitions gave it") },
      ask: (args) => ({
        method: "POST",
        path: at`/issue/${args.key}/transitions`,
        body: { transition: { id: args.transitionId } }
      }),
      done: (args) => ({ moved: args.key }),
      annotations: { destructive: true }
    }),
    change({
      name: "jira_add_comment",
      about: "Comments on an issue of Jira.",
      parameters: { key, body: text("Plain text") },
      ask: (args) => ({
        method: "POST",
        path: at`/issue/${args.key}/comment`,
        body: { body: documentOf(args.body) }
      }),
      answer: Schema.Struct({ id: Schema.String })
    }),
    submit({
      name: "jira_assign_issue",
      about: "Assigns an issue to a person, or to nobody.",
      parameters: { key, accountId: optionalText("Without it, to nobody") },
      ask: (args) => ({
        method: "PUT",
        path: at`/issue/${args.key}/assignee`,
        body: { accountId: args.accountId ?? null }
      }),
      done: (args) => ({ assigned: args.key }),
      annotations: { destructive: true, idempotent: true }
    })
  ] as const
}
