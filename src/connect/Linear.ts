/**
 * Linear: issues, teams, projects.
 *
 * An `ApiKey` is sent as Linear's own keys are, an `OAuthToken` as a bearer.
 */
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { readOptions } from "../core/schema/invalid.ts"
import { check } from "../support/options/check.ts"
import { cut } from "../support/text/text.ts"
import { limitField, makeConnector, type Options, optionalText, text } from "./internal/connectors/client.ts"
import { type Answer, bearer, jsonOf, type Refusal } from "./internal/connectors/http.ts"
import * as shapes from "./internal/shapes.ts"

const Named = Schema.Struct({ id: Schema.String, name: Schema.String })

const Issue = Schema.Struct({
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

const issueFields =
  "id identifier title url description priorityLabel state { id name } assignee { id name } team { id name }"

const Team = Schema.Struct({ id: Schema.String, name: Schema.String, key: Schema.String })
const Project = Schema.Struct({ id: Schema.String, name: Schema.String, url: Schema.optionalKey(Schema.String) })

/** Finds the errors in a response of GraphQL. Linear reports its rate limit with status 400. */
const refusalOf = (answer: Answer): Refusal | undefined => {
  const json = jsonOf(answer)
  const errors = Predicate.isObject(json) ? json["errors"] : undefined
  if (!Array.isArray(errors) || errors.length === 0) return undefined
  const errorText = JSON.stringify(errors)
  return {
    problem: `it refused: ${cut(errorText, 1_000)}`,
    isRateLimit: errorText.includes('"RATELIMITED"'),
    isUnauthorised: errorText.includes('"AUTHENTICATION_ERROR"')
  }
}

/** Makes a request of GraphQL. */
const ask = (query: string, variables: object, isReading = true) => ({
  method: "POST" as const,
  path: "/graphql",
  body: { query, variables },
  isReading
})

const pageOf = <S extends Schema.Constraint>(node: S) =>
  Schema.Struct({
    data: Schema.Struct({
      page: Schema.Struct({
        nodes: Schema.Array(node),
        pageInfo: Schema.Struct({ hasNextPage: Schema.Boolean, endCursor: Schema.NullOr(Schema.String) })
      })
    })
  })

const itemsOf = <A>({
  data: {
    page: { nodes, pageInfo }
  }
}: {
  readonly data: {
    readonly page: {
      readonly nodes: ReadonlyArray<A>
      readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null }
    }
  }
}) => ({ items: nodes, next: pageInfo.hasNextPage ? pageInfo.endCursor : undefined })

const askPage = (field: string, fields: string, after: string | undefined, term?: string) => {
  const [declared, argument] = term === undefined ? ["", ""] : [", $term: String!", ", term: $term"]
  const query = `query($after: String${declared}) { page: ${field}(first: 50, after: $after${argument}) { nodes { ${fields} } pageInfo { hasNextPage endCursor } } }`
  return ask(query, { ...(term === undefined ? {} : { term }), after })
}

const Done = Schema.Struct({
  data: Schema.Struct({ done: Schema.Struct({ success: Schema.Boolean, issue: Issue }) })
})

const id = text("Its id, or as people name it: ENG-12")
const fieldsOfChange = {
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

const checkTools = check(shapes.linearTools)

/** Makes the tools of Linear. */
export const tools = <R = never>(options: Options<R>) => {
  const [{ baseUrl = "https://api.linear.app", connection }, problem] = readOptions(checkTools, options)
  const { change, list, read } = makeConnector({
    problem,
    service: "Linear",
    connection,
    baseUrl,
    refusal: refusalOf,
    show: (credential) =>
      credential._tag === "ApiKey"
        ? { headers: { authorization: Redacted.make(Redacted.value(credential.key)) } }
        : bearer(credential)
  })
  return [
    list({
      name: "linear_search_issues",
      about: "Finds issues in Linear.",
      parameters: { query: Schema.String, limit: limitField },
      ask: ({ query }, after) => askPage("searchIssues", issueFields, after, query),
      answer: pageOf(Issue),
      page: itemsOf
    }),
    read({
      name: "linear_get_issue",
      about: "Reads an issue of Linear.",
      parameters: { id },
      ask: (args) => ask(`query($id: String!) { issue(id: $id) { ${issueFields} } }`, { id: args.id }),
      answer: Schema.Struct({ data: Schema.Struct({ issue: Issue }) }),
      show: ({ data }) => data.issue
    }),
    list({
      name: "linear_list_teams",
      about: "Lists the teams of Linear.",
      parameters: { limit: limitField },
      ask: (_, after) => askPage("teams", "id name key", after),
      answer: pageOf(Team),
      page: itemsOf
    }),
    list({
      name: "linear_list_projects",
      about: "Lists the projects of Linear.",
      parameters: { limit: limitField },
      ask: (_, after) => askPage("projects", "id name url", after),
      answer: pageOf(Project),
      page: itemsOf
    }),
    change({
      name: "linear_create_issue",
      about: "Makes an issue in Linear.",
      parameters: { teamId: text("As linear_list_teams gave it"), title: Schema.String, ...fieldsOfChange },
      ask: (input) =>
        ask(
          `mutation($input: IssueCreateInput!) { done: issueCreate(input: $input) { success issue { ${issueFields} } } }`,
          { input },
          false
        ),
      answer: Done,
      show: ({ data }) => data.done.issue
    }),
    change({
      name: "linear_update_issue",
      about: "Changes an issue of Linear.",
      parameters: { id, title: Schema.optionalKey(Schema.String), ...fieldsOfChange },
      ask: ({ id: key, ...input }) =>
        ask(
          `mutation($id: String!, $input: IssueUpdateInput!) { done: issueUpdate(id: $id, input: $input) { success issue { ${issueFields} } } }`,
          { id: key, input },
          false
        ),
      answer: Done,
      show: ({ data }) => data.done.issue,
      annotations: { destructive: true, idempotent: true }
    })
  ] as const
}
