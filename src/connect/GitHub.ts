/**
 * GitHub: repositories, issues, pull requests, code. For all of its 1,200 operations, see `OpenApiTools`.
 *
 * The token's permissions: contents, issues and pull requests, to read, and to write for changes.
 */
import * as Effect from "effect/Effect"
import * as Headers from "effect/http/Headers"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import {
  at,
  limitField,
  makeClient,
  makeTools,
  type Options,
  optionalText,
  text
} from "./internal/connectors/client.ts"
import { decode } from "./internal/connectors/http.ts"

export type { Options }

const Login = Schema.Struct({ login: Schema.String })

/** Schema of an issue or a pull request, as far as it is read. */
export const Issue = Schema.Struct({
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
export interface Issue extends Schema.Schema.Type<typeof Issue> {}

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

/** A page that is not the last names the next one. */
const hasNext = (headers: Headers.Headers): boolean =>
  /rel="?next"?/i.test(Option.getOrElse(Headers.get(headers, "link"), () => "").slice(0, 8_000))

/** Makes a client of GitHub for one token. */
export const make = <R = never>({ baseUrl = "https://api.github.com", connection }: Options<R>) => {
  const service = "GitHub"
  const headers = { accept: "application/vnd.github+json", "x-github-api-version": "2022-11-28" }
  const http = makeClient({ service, connection, baseUrl, headers })
  const list = <A, B>(
    operation: string,
    path: string,
    schema: Schema.ConstraintDecoder<A>,
    itemsOf: (page: A) => ReadonlyArray<B>,
    query: { readonly [name: string]: string | undefined } = {}
  ) =>
    http.paged(operation, (page: number | undefined = 1) =>
      Effect.gen(function* () {
        const answer = yield* http.raw(operation, "GET", path, { query: { ...query, per_page: 100, page } })
        const items = itemsOf(yield* decode({ service, operation }, schema, answer))
        return { items, next: hasNext(answer.headers) ? page + 1 : undefined }
      })
    )
  const of = (repository: string) => {
    const [owner = "", name = ""] = repository.split("/")
    return at`/repos/${owner}/${name}`
  }
  const same = <A>(items: ReadonlyArray<A>) => items
  return {
    /** Issues and pull requests of all repositories, by GitHub's own search words. */
    searchIssues: (q: string) =>
      list("search issues", "/search/issues", Schema.Struct({ items: Schema.Array(Issue) }), ({ items }) => items, {
        q
      }),
    searchCode: (q: string) =>
      list("search code", "/search/code", Schema.Struct({ items: Schema.Array(Code) }), ({ items }) => items, { q }),
    issues: (repository: string, state = "open") =>
      list("list issues", `${of(repository)}/issues`, Schema.Array(Issue), same, { state }),
    issue: (repository: string, number: number) =>
      http.get("read an issue", `${of(repository)}/issues/${number}`, Issue),
    comments: (repository: string, number: number) =>
      list("list comments", `${of(repository)}/issues/${number}/comments`, Schema.Array(Comment), same),
    pull: (repository: string, number: number) =>
      http.get("read a pull request", `${of(repository)}/pulls/${number}`, Issue),
    /** The files that a pull request changes, with their patches. */
    pullFiles: (repository: string, number: number) =>
      list("list changed files", `${of(repository)}/pulls/${number}/files`, Schema.Array(Changed), same),
    createIssue: (repository: string, issue: { readonly title: string; readonly body?: string | undefined }) =>
      http.post("create an issue", `${of(repository)}/issues`, Issue, issue),
    updateIssue: (
      repository: string,
      number: number,
      change: {
        readonly title?: string | undefined
        readonly body?: string | undefined
        readonly state?: "open" | "closed" | undefined
      }
    ) => http.request("change an issue", "PATCH", `${of(repository)}/issues/${number}`, Issue, { body: change }),
    comment: (repository: string, number: number, body: string) =>
      http.post("comment", `${of(repository)}/issues/${number}/comments`, Comment, { body })
  }
}

/** Makes the tools of GitHub. */
export const tools = <R = never>(options: Options<R>) => {
  const github = make(options)
  const { listing, reading, writing } = makeTools("GitHub")
  const repository = Schema.String.check(Schema.isPattern(/^[^/\s]+\/[^/\s]+$/)).annotate({ description: "owner/name" })
  const number = Schema.Int.annotate({ description: "Its number" })
  const words = text("GitHub's search words")
  return [
    listing(
      "github_search_issues",
      "Finds issues and pull requests on GitHub.",
      { query: words, limit: limitField },
      ({ query }) => github.searchIssues(query)
    ),
    listing(
      "github_search_code",
      "Finds files by their code on GitHub.",
      { query: words, limit: limitField },
      ({ query }) => github.searchCode(query)
    ),
    listing(
      "github_list_issues",
      "Lists the issues of a repository, pull requests too.",
      { repository, state: Schema.optionalKey(Schema.Literals(["open", "closed", "all"])), limit: limitField },
      (args) => github.issues(args.repository, args.state)
    ),
    reading("github_get_issue", "Reads an issue.", { repository, number }, (args) =>
      github.issue(args.repository, args.number)
    ),
    listing(
      "github_list_comments",
      "Reads the comments of an issue or a pull request.",
      { repository, number, limit: limitField },
      (args) => github.comments(args.repository, args.number)
    ),
    reading("github_get_pull_request", "Reads a pull request.", { repository, number }, (args) =>
      github.pull(args.repository, args.number)
    ),
    listing(
      "github_list_pull_request_files",
      "Lists the files that a pull request changes, with their patches.",
      { repository, number, limit: limitField },
      (args) => github.pullFiles(args.repository, args.number)
    ),
    writing(
      "github_create_issue",
      "Opens an issue.",
      { repository, title: Schema.String, body: optionalText("In Markdown") },
      ({ repository: where, ...issue }) => github.createIssue(where, issue)
    ),
    writing(
      "github_update_issue",
      "Changes, closes or opens an issue.",
      {
        repository,
        number,
        title: Schema.optionalKey(Schema.String),
        body: Schema.optionalKey(Schema.String),
        state: Schema.optionalKey(Schema.Literals(["open", "closed"]))
      },
      ({ number: which, repository: where, ...change }) => github.updateIssue(where, which, change),
      { destructive: true, idempotent: true }
    ),
    writing(
      "github_comment",
      "Comments on an issue or a pull request.",
      { repository, number, body: text("In Markdown") },
      (args) => github.comment(args.repository, args.number, args.body)
    )
  ] as const
}
