/**
 * GitHub: repositories, issues, pull requests, code. For all of its 1,200 operations, see `OpenApiTools`.
 *
 * The token's permissions: contents, issues and pull requests, to read, and to write for changes.
 */
import type { Headers } from "effect/http/Headers"
import * as Schema from "effect/Schema"
import { readOptions } from "../core/schema/invalid.ts"
import { check } from "../support/options/check.ts"
import { at, limitField, makeConnector, type Options, optionalText, text } from "./internal/connectors/client.ts"
import * as shapes from "./internal/shapes.ts"

export type { Options } from "./internal/connectors/client.ts"

const Login = Schema.Struct({ login: Schema.String })

const Issue = Schema.Struct({
  number: Schema.Finite,
  title: Schema.String,
  state: Schema.String,
  html_url: Schema.String,
  body: Schema.optionalKey(Schema.NullOr(Schema.String)),
  user: Schema.optionalKey(Schema.NullOr(Login)),
  updated_at: Schema.optionalKey(Schema.String),
  comments: Schema.optionalKey(Schema.Finite),
  draft: Schema.optionalKey(Schema.Boolean),
  merged: Schema.optionalKey(Schema.Boolean)
})

const Comment = Schema.Struct({
  id: Schema.Finite,
  html_url: Schema.String,
  body: Schema.optionalKey(Schema.NullOr(Schema.String)),
  user: Schema.optionalKey(Schema.NullOr(Login)),
  created_at: Schema.optionalKey(Schema.String)
})

const Changed = Schema.Struct({
  filename: Schema.String,
  status: Schema.String,
  additions: Schema.Finite,
  deletions: Schema.Finite,
  patch: Schema.optionalKey(Schema.String)
})

const Code = Schema.Struct({
  path: Schema.String,
  html_url: Schema.String,
  repository: Schema.Struct({ full_name: Schema.String })
})

const Found = <S extends Schema.Constraint>(item: S) => Schema.Struct({ items: Schema.Array(item) })

/** Makes a page. GitHub links from each page to the next one. */
const pageOf = <A>(items: ReadonlyArray<A>, headers: Headers, page = 1) => ({
  items,
  next: /rel="?next"?/i.test((headers["link"] ?? "").slice(0, 8_000)) ? page + 1 : undefined
})

const pathOf = (repository: string) => {
  const [owner = "", name = ""] = repository.split("/")
  return at`/repos/${owner}/${name}`
}

const repository = Schema.String.check(Schema.isPattern(/^[^/\s]+\/[^/\s]+$/)).annotate({ description: "owner/name" })
const number = Schema.Int.annotate({ description: "Its number" })
const words = text("GitHub's search words")

const checkTools = check(shapes.gitHubTools)

/** Makes the tools of GitHub. */
export const tools = <R = never>(options: Options<R>) => {
  const [{ baseUrl = "https://api.github.com", connection }, problem] = readOptions(checkTools, options)
  const headers = { accept: "application/vnd.github+json", "x-github-api-version": "2022-11-28" }
  const { change, list, read } = makeConnector({ problem, service: "GitHub", connection, baseUrl, headers })
  return [
    list({
      name: "github_search_issues",
      about: "Finds issues and pull requests on GitHub.",
      parameters: { query: words, limit: limitField },
      ask: ({ query: q }, page: number | undefined = 1) => ({
        path: "/search/issues",
        query: { q, per_page: 100, page }
      }),
      answer: Found(Issue),
      page: ({ items }, ...rest) => pageOf(items, ...rest)
    }),
    list({
      name: "github_search_code",
      about: "Finds files by their code on GitHub.",
      parameters: { query: words, limit: limitField },
      ask: ({ query: q }, page: number | undefined = 1) => ({
        path: "/search/code",
        query: { q, per_page: 100, page }
      }),
      answer: Found(Code),
      page: ({ items }, ...rest) => pageOf(items, ...rest)
    }),
    list({
      name: "github_list_issues",
      about: "Lists the issues of a repository, pull requests too.",
      parameters: {
        repository,
        state: Schema.optionalKey(Schema.Literals(["open", "closed", "all"])),
        limit: limitField
      },
      ask: ({ repository: where, state = "open" }, page: number | undefined = 1) => ({
        path: `${pathOf(where)}/issues`,
        query: { state, per_page: 100, page }
      }),
      answer: Schema.Array(Issue),
      page: pageOf
    }),
    read({
      name: "github_get_issue",
      about: "Reads an issue.",
      parameters: { repository, number },
      ask: (args) => ({ path: `${pathOf(args.repository)}/issues/${args.number}` }),
      answer: Issue
    }),
    list({
      name: "github_list_comments",
      about: "Reads the comments of an issue or a pull request.",
      parameters: { repository, number, limit: limitField },
      ask: (args, page: number | undefined = 1) => ({
        path: `${pathOf(args.repository)}/issues/${args.number}/comments`,
        query: { per_page: 100, page }
      }),
      answer: Schema.Array(Comment),
      page: pageOf
    }),
    read({
      name: "github_get_pull_request",
      about: "Reads a pull request.",
      parameters: { repository, number },
      ask: (args) => ({ path: `${pathOf(args.repository)}/pulls/${args.number}` }),
      answer: Issue
    }),
    list({
      name: "github_list_pull_request_files",
      about: "Lists the files that a pull request changes, with their patches.",
      parameters: { repository, number, limit: limitField },
      ask: (args, page: number | undefined = 1) => ({
        path: `${pathOf(args.repository)}/pulls/${args.number}/files`,
        query: { per_page: 100, page }
      }),
      answer: Schema.Array(Changed),
      page: pageOf
    }),
    change({
      name: "github_create_issue",
      about: "Opens an issue.",
      parameters: { repository, title: Schema.String, body: optionalText("In Markdown") },
      ask: ({ repository: where, ...body }) => ({ method: "POST", path: `${pathOf(where)}/issues`, body }),
      answer: Issue
    }),
    change({
      name: "github_update_issue",
      about: "Changes, closes or opens an issue.",
      parameters: {
        repository,
        number,
        title: Schema.optionalKey(Schema.String),
        body: Schema.optionalKey(Schema.String),
        state: Schema.optionalKey(Schema.Literals(["open", "closed"]))
      },
      ask: ({ number: which, repository: where, ...body }) => ({
        method: "PATCH",
        path: `${pathOf(where)}/issues/${which}`,
        body
      }),
      answer: Issue,
      annotations: { destructive: true, idempotent: true }
    }),
    change({
      name: "github_comment",
      about: "Comments on an issue or a pull request.",
      parameters: { repository, number, body: text("In Markdown") },
      ask: ({ body, number: which, repository: where }) => ({
        method: "POST",
        path: `${pathOf(where)}/issues/${which}/comments`,
        body: { body }
      }),
      answer: Comment
    })
  ] as const
}
