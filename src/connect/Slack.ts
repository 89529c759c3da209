/**
 * Slack: channels, messages, threads, people.
 *
 * The token's scopes: `channels:read`, `channels:history`, `users:read`, `users:read.email`, `chat:write`; searching
 * needs a person's token with `search:read`.
 */
import * as HttpBody from "effect/http/HttpBody"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { readOptions } from "../core/schema/invalid.ts"
import { check } from "../support/options/check.ts"
import { cut } from "../support/text/text.ts"
import { limitField, makeConnector, type Options, optionalText, text } from "./internal/connectors/client.ts"
import { type Answer, jsonOf, type Refusal } from "./internal/connectors/http.ts"
import * as shapes from "./internal/shapes.ts"

const Message = Schema.Struct({
  ts: Schema.String,
  user: Schema.optionalKey(Schema.String),
  text: Schema.optionalKey(Schema.String),
  thread_ts: Schema.optionalKey(Schema.String),
  reply_count: Schema.optionalKey(Schema.Finite)
})

const Found = Schema.Struct({
  ts: Schema.String,
  text: Schema.optionalKey(Schema.String),
  username: Schema.optionalKey(Schema.NullOr(Schema.String)),
  permalink: Schema.optionalKey(Schema.String),
  channel: Schema.Struct({ id: Schema.String, name: Schema.optionalKey(Schema.String) })
})

const Channel = Schema.Struct({
  id: Schema.String,
  name: Schema.optionalKey(Schema.String),
  is_private: Schema.optionalKey(Schema.Boolean),
  num_members: Schema.optionalKey(Schema.Finite),
  topic: Schema.optionalKey(Schema.Struct({ value: Schema.String }))
})

const User = Schema.Struct({
  id: Schema.String,
  name: Schema.optionalKey(Schema.String),
  real_name: Schema.optionalKey(Schema.String),
  tz: Schema.optionalKey(Schema.String),
  profile: Schema.optionalKey(
    Schema.Struct({ email: Schema.optionalKey(Schema.String), title: Schema.optionalKey(Schema.String) })
  )
})

const Cursor = Schema.optionalKey(Schema.Struct({ next_cursor: Schema.optionalKey(Schema.String) }))
const Messages = Schema.Struct({ messages: Schema.Array(Message), response_metadata: Cursor })

const messagesOf = ({ messages: items, response_metadata }: typeof Messages.Type) => ({
  items,
  next: response_metadata?.next_cursor
})

const unauthorised = ["invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive"]

/** Finds the error in a response, which Slack sends with status 200. */
const refusalOf = (answer: Answer): Refusal | undefined => {
  if (answer.status !== 200) return undefined
  const json = jsonOf(answer)
  if (!Predicate.isObject(json) || json["ok"] !== false) return undefined
  const error = cut(typeof json["error"] === "string" ? json["error"] : "unknown_error", 100)
  const needed = typeof json["needed"] === "string" ? ` It needs the scope ${cut(json["needed"], 100)}.` : ""
  return {
    problem: `it refused: ${JSON.stringify(error)}.${needed}`,
    isRateLimit: error === "ratelimited",
    isUnauthorised: unauthorised.includes(error)
  }
}

const channel = text("The id of a channel, as slack_list_channels gave it")

const checkTools = check(shapes.slackTools)

/** Makes the tools of Slack. */
export const tools = <R = never>(options: Options<R>) => {
  const [{ baseUrl = "https://slack.com/api", connection }, problem] = readOptions(checkTools, options)
  const { change, list, read } = makeConnector({ problem, service: "Slack", connection, baseUrl, refusal: refusalOf })
  return [
    list({
      name: "slack_search_messages",
      about: "Finds messages in Slack.",
      parameters: { query: text('Slack\'s search words ("in:#general from:@ada")'), limit: limitField },
      ask: ({ query }, page: number | undefined) => ({
        path: "/search.messages",
        query: { query, sort: "timestamp", count: 100, page }
      }),
      answer: Schema.Struct({
        messages: Schema.Struct({
          matches: Schema.Array(Found),
          paging: Schema.optionalKey(Schema.Struct({ page: Schema.Finite, pages: Schema.Finite }))
        })
      }),
      page: ({ messages: { matches, paging } }) => ({
        items: matches,
        next: paging !== undefined && paging.page < paging.pages ? paging.page + 1 : undefined
      })
    }),
    list({
      name: "slack_list_channels",
      about: "Lists the channels of Slack.",
      parameters: { limit: limitField },
      ask: (_, cursor) => ({ path: "/conversations.list", query: { exclude_archived: true, limit: 200, cursor } }),
      answer: Schema.Struct({ channels: Schema.Array(Channel), response_metadata: Cursor }),
      page: ({ channels, response_metadata }) => ({ items: channels, next: response_metadata?.next_cursor })
    }),
    list({
      name: "slack_channel_history",
      about: "Reads the latest messages of a channel.",
      parameters: { channel, limit: limitField },
      ask: (args, cursor) => ({
        path: "/conversations.history",
        query: { channel: args.channel, limit: 100, cursor }
      }),
      answer: Messages,
      page: messagesOf
    }),
    list({
      name: "slack_get_thread_replies",
      about: "Reads a thread: a message and its answers.",
      parameters: { channel, ts: text("The ts of its first message"), limit: limitField },
      ask: (args, cursor) => ({
        path: "/conversations.replies",
        query: { channel: args.channel, ts: args.ts, limit: 100, cursor }
      }),
      answer: Messages,
      page: messagesOf
    }),
    read({
      name: "slack_user_lookup",
      about: "Looks up a person in Slack.",
      parameters: { user: text("An address, or the id of a user") },
      ask: ({ user }) =>
        user.includes("@")
          ? { path: "/users.lookupByEmail", query: { email: user } }
          : { path: "/users.info", query: { user } },
      answer: Schema.Struct({ user: User }),
      show: ({ user }) => user
    }),
    change({
      name: "slack_post_message",
      about: "Posts a message to a channel, or as an answer in a thread.",
      parameters: {
        channel,
        text: text("In Slack's markup"),
        thread_ts: optionalText("The ts of the thread's first message")
      },
      ask: (args) => ({
        method: "POST",
        path: "/chat.postMessage",
        body: HttpBody.text(JSON.stringify(args), "application/json; charset=utf-8")
      }),
      answer: Schema.Struct({ channel: Schema.String, ts: Schema.String })
    })
  ] as const
}
