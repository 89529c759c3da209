/**
 * Linear: issues, teams, projects.
 *
 * An `ApiKey` is sent as Linear's own keys are, an `OAuthToken` as a bearer.
 */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { cut } from "../support/text/text.ts"
import { limitField, makeClient, makeTools, type Options, optionalText, text } from "./internal/connectors/client.ts"
import { type Answer, bearer, jsonOf, type Refusal } from "./internal/connectors/http.ts"

export type { Options }

const Named = Schema.Struct({ id: Schema.String, name: Schema.String })

/** Schema of an issue, as far as it is read. */
export const Issue = Schema.Struct({
  id: Schema.String,
  identifier: Schema.String,
  title: Schema.String,
  url: Schema.String,
  description: Schema.optionalKey(Schema.NullOr(Schema.String)),
  priorityLabel: Schema.optionalKey(Schema.String),
  state: Schema.optionalKey(Schema.NullOr(Named)),
  assignee: Schema.optionalKey(Schema.NullOr(Named)),
  team: Schema.optionalKey(Schema.NullOr(Named))
})
export interface Issue extends Schema.Schema.Type<typeof Issue> {}

const issueFields =
  "id identifier title url description priorityLabel state { id name } assignee { id name } team { id name }"

const Team = Schema.Struct({ id: Schema.String, name: Schema.String, key: Schema.String })
const Project = Schema.Struct({ id: Schema.String, name: Schema.String, url: Schema.optionalKey(Schema.String) })

/** GraphQL says in its answer what went wrong; that it is asked too often, Linear says with status 400. */
const refusal = (answer: Answer): Refusal | undefined => {
  const json = jsonOf(answer)
  const errors = Predicate.isObject(json) ? json["errors"] : undefined
  if (!Array.isArray(errors) || errors.length === 0) return undefined
  const said = JSON.stringify(errors)
  return {
    problem: `it refused: ${cut(said, 1_000)}`,
    isRateLimit: said.includes('"RATELIMITED"'),
    isUnauthorised: said.includes('"AUTHENTICATION_ERROR"')
  }
}

/** The fields of an issue that can be set. */
export interface Change {
  readonly title?: string | undefined
  readonly description?: string | undefined
  readonly stateId?: string | undefined
  readonly assigneeId?: string | undefined
  readonly projectId?: string | undefined
  readonly priority?: number | undefined
}

/** Makes a client of Linear for one account. */
export const make = <R = never>({ baseUrl = "https://api.linear.app", connection }: Options<R>) => {
  const http = makeClient({
    service: "Linear",
    connection,
    baseUrl,
    refusal,
    show: (credential) =>
      credential._tag === "ApiKey"
        ? { headers: { authorization: Redacted.make(Redacted.value(credential.key)) } }
        : bearer(credential)
  })
  const graph = <A>(
    operation: string,
    query: string,
    variables: object,
    data: Schema.ConstraintDecoder<A>,
    isReading: boolean
  ) =>
    Effect.map(
      http.post(operation, "/graphql", Schema.Struct({ data }), { query, variables }, { isReading }),
      (answer) => answer.data
    )
  const list = <A>(
    operation: string,
    field: string,
    fields: string,
    node: Schema.ConstraintDecoder<A>,
    variables: object = {},
    declared = "",
    given = ""
  ) =>
    http.paged(operation, (after: string | undefined) =>
      Effect.map(
        graph(
          operation,
          `query($after: String${declared}) { page: ${field}(first: 50, after: $after${given}) { nodes { ${fields} } pageInfo { hasNextPage endCursor } } }`,
          { ...variables, after },
          Schema.Struct({
            page: Schema.Struct({
              nodes: Schema.Array(node),
              pageInfo: Schema.Struct({ hasNextPage: Schema.Boolean, endCursor: Schema.NullOr(Schema.String) })
            })
          }),
          true
        ),
        ({ page: { nodes, pageInfo } }) => ({
          items: nodes,
          next: pageInfo.hasNextPage ? pageInfo.endCursor : undefined
        })
      )
    )
  const changed = Schema.Struct({ done: Schema.Struct({ success: Schema.Boolean, issue: Issue }) })
  return {
    searchIssues: (term: string) =>
      list("search issues", "searchIssues", issueFields, Issue, { term }, ", $term: String!", ", term: $term"),
    /** An issue by its id, or as people name it: `ENG-12`. */
    issue: (id: string) =>
      Effect.map(
        graph(
          "read an issue",
          `query($id: String!) { issue(id: $id) { ${issueFields} } }`,
          { id },
          Schema.Struct({ issue: Issue }),
          true
        ),
        ({ issue }) => issue
      ),
    teams: () => list("list teams", "teams", "id name key", Team),
    projects: () => list("list projects", "projects", "id name url", Project),
    createIssue: (input: Change & { readonly teamId: string; readonly title: string }) =>
      Effect.map(
        graph(
          "create an issue",
          `mutation($input: IssueCreateInput!) { done: issueCreate(input: $input) { success issue { ${issueFields} } } }`,
          { input },
          changed,
          false
        ),
        ({ done }) => done.issue
      ),
    updateIssue: (id: string, input: Change) =>
      Effect.map(
        graph(
          "change an issue",
          `mutation($id: String!, $input: IssueUpdateInput!) { done: issueUpdate(id: $id, input: $input) { success issue { ${issueFields} } } }`,
          { id, input },
          changed,
          false
        ),
        ({ done }) => done.issue
      )
  }
}

/** Makes the tools of Linear. */
export const tools = <R = never>(options: Options<R>) => {
  const linear = make(options)
  const { listing, reading, writing } = makeTools("Linear")
  const id = text("Its id, or as people name it: ENG-12")
  const change = {
    description: optionalText("In Markdown"),
    stateId: Schema.optionalKey(Schema.String),
    assigneeId: Schema.optionalKey(Schema.String),
    projectId: Schema.optionalKey(Schema.String),
    priority: Schema.optionalKey(
      Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 4 })).annotate({
        description: "1 is urgent, 4 low, 0 none"
      })
    )
  }
  return [
    listing(
      "linear_search_issues",
      "Finds issues in Linear.",
      { query: Schema.String, limit: limitField },
      ({ query }) => linear.searchIssues(query)
    ),
    reading("linear_get_issue", "Reads an issue of Linear.", { id }, (args) => linear.issue(args.id)),
    listing("linear_list_teams", "Lists the teams of Linear.", { limit: limitField }, () => linear.teams()),
    listing("linear_list_projects", "Lists the projects of Linear.", { limit: limitField }, () => linear.projects()),
    writing(
      "linear_create_issue",
      "Makes an issue in Linear.",
      { teamId: text("As linear_list_teams gave it"), title: Schema.String, ...change },
      linear.createIssue
    ),
    writing(
      "linear_update_issue",
      "Changes an issue of Linear.",
      { id, title: Schema.optionalKey(Schema.String), ...change },
      ({ id: which, ...input }) => linear.updateIssue(which, input),
      { destructive: true, idempotent: true }
    )
  ] as const
}
