/**
 * Jira: issues, their states and comments, by version 3 of its API.
 *
 * The scopes of an OAuth token: `read:jira-work`, and `write:jira-work` for changes.
 */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { cut } from "../support/text/text.ts"
import { type SiteOptions, show } from "./internal/connectors/atlassian.ts"
import { at, limitField, makeClient, makeTools, optionalText, text } from "./internal/connectors/client.ts"

export type { SiteOptions as Options }

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

/** An issue, with its description as plain text. */
export interface Issue {
  readonly id: string
  readonly key: string
  readonly summary: string
  readonly status: string
  readonly type: string
  readonly priority: string
  readonly assignee: string
  readonly reporter: string
  readonly updated: string
  readonly description: string
}

const Transition = Schema.Struct({ id: Schema.String, name: Schema.String, to: Schema.optionalKey(Named) })
const Created = Schema.Struct({ id: Schema.String, key: Schema.String })

/** The text of a document of Atlassian's format (ADF), a paragraph on each line. */
const textOf = (document: unknown): string => {
  let found = ""
  const todo: Array<unknown> = [document]
  for (let node = todo.pop(); node !== undefined && found.length < 20_000; node = todo.pop()) {
    if (typeof node === "string") found += node
    if (!Predicate.isObject(node)) continue
    const { attrs, content, text: own, type } = node
    if (typeof own === "string") found += own
    // People, signs and links stand in attributes.
    const said = Predicate.isObject(attrs) ? (attrs["text"] ?? attrs["url"] ?? attrs["shortName"]) : undefined
    if (typeof said === "string") found += said
    if (type === "hardBreak") found += "\n"
    if (/^(?:paragraph|heading|codeBlock|tableRow|rule)$/.test(typeof type === "string" ? type : "")) todo.push("\n")
    if (Array.isArray(content)) for (let index = content.length - 1; index >= 0; index--) todo.push(content[index])
  }
  return cut(found.trim(), 20_000)
}

/** Plain text as a document of Atlassian's format: no paragraph may be empty of nodes. */
const documentOf = (body: string) => ({
  type: "doc",
  version: 1,
  content: body
    .split(/[\r\n]+/)
    .filter((line) => line !== "")
    .map((line) => ({ type: "paragraph", content: [{ type: "text", text: line }] }))
})

const issueOf = ({ fields, id, key }: typeof Wire.Type): Issue => ({
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

/** Makes a client of Jira for one site. */
export const make = <R = never>({ baseUrl, connection }: SiteOptions<R>) => {
  const http = makeClient({ service: "Jira", connection, show, baseUrl, root: "/rest/api/3" })
  const change = (operation: string, method: "POST" | "PUT", path: string, body: object) =>
    Effect.asVoid(http.raw(operation, method, path, { body }))
  return {
    /** Issues by JQL. */
    search: (jql: string) =>
      http.list(
        "search issues",
        "/search/jql",
        Schema.Struct({
          issues: Schema.Array(Wire),
          nextPageToken: Schema.optionalKey(Schema.NullOr(Schema.String))
        }),
        "nextPageToken",
        { jql, fields, maxResults: 50 },
        ({ issues, nextPageToken: next }) => ({ items: issues.map(issueOf), next })
      ),
    issue: (key: string) => Effect.map(http.get("read an issue", at`/issue/${key}`, Wire, { fields }), issueOf),
    create: (issue: {
      readonly project: string
      readonly summary: string
      readonly type: string
      readonly description?: string | undefined
    }) =>
      http.post("create an issue", "/issue", Created, {
        fields: {
          project: { key: issue.project },
          summary: issue.summary,
          issuetype: { name: issue.type },
          ...(issue.description === undefined ? {} : { description: documentOf(issue.description) })
        }
      }),
    /** The states that an issue can be brought to, and the ids of the ways there. */
    transitions: (key: string) =>
      Effect.map(
        http.get(
          "list transitions",
          at`/issue/${key}/transitions`,
          Schema.Struct({ transitions: Schema.Array(Transition) })
        ),
        ({ transitions }) => transitions
      ),
    transition: (key: string, id: string) =>
      change("move an issue", "POST", at`/issue/${key}/transitions`, { transition: { id } }),
    comment: (key: string, body: string) =>
      http.post("comment", at`/issue/${key}/comment`, Schema.Struct({ id: Schema.String }), { body: documentOf(body) }),
    /** Assigns an issue; to nobody without an account. */
    assign: (key: string, accountId: string | undefined) =>
      change("assign an issue", "PUT", at`/issue/${key}/assignee`, { accountId: accountId ?? null })
  }
}

/** Makes the tools of Jira. */
export const tools = <R = never>(options: SiteOptions<R>) => {
  const jira = make(options)
  const { listing, reading, writing } = makeTools("Jira")
  const key = text("The key of an issue, such as ENG-12")
  return [
    listing(
      "jira_search",
      "Finds issues in Jira.",
      { jql: text('JQL, such as project = ENG AND status = "To Do"'), limit: limitField },
      ({ jql }) => jira.search(jql)
    ),
    reading("jira_get_issue", "Reads an issue of Jira.", { key }, (args) => jira.issue(args.key)),
    reading("jira_list_transitions", "Lists the states that an issue can be brought to.", { key }, (args) =>
      jira.transitions(args.key)
    ),
    writing(
      "jira_create_issue",
      "Makes an issue in Jira.",
      {
        project: text("The key of its project"),
        summary: Schema.String,
        type: text("Such as Task, Bug or Story"),
        description: optionalText("Plain text")
      },
      jira.create
    ),
    writing(
      "jira_transition_issue",
      "Brings an issue to another state.",
      { key, transitionId: text("As jira_list_transitions gave it") },
      (args) => Effect.as(jira.transition(args.key, args.transitionId), { moved: args.key }),
      { destructive: true }
    ),
    writing("jira_add_comment", "Comments on an issue of Jira.", { key, body: text("Plain text") }, (args) =>
      jira.comment(args.key, args.body)
    ),
    writing(
      "jira_assign_issue",
      "Assigns an issue to a person, or to nobody.",
      { key, accountId: optionalText("Without it, to nobody") },
      (args) => Effect.as(jira.assign(args.key, args.accountId), { assigned: args.key }),
      { destructive: true, idempotent: true }
    )
  ] as const
}
