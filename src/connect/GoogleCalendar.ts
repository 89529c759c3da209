/**
 * Google Calendar: events, free times, booking.
 *
 * The account's scopes: `calendar.readonly`, and `calendar.events` for changes.
 */
import * as Effect from "effect/Effect"
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
import { refusal } from "./internal/connectors/google.ts"

export type { Options }

const Time = Schema.Struct({
  dateTime: Schema.optionalKey(Schema.String),
  date: Schema.optionalKey(Schema.String),
  timeZone: Schema.optionalKey(Schema.String)
})

/** Schema of an event, as far as it is read. */
export const Event = Schema.Struct({
  id: Schema.String,
  status: Schema.optionalKey(Schema.String),
  summary: Schema.optionalKey(Schema.String),
  description: Schema.optionalKey(Schema.String),
  location: Schema.optionalKey(Schema.String),
  htmlLink: Schema.optionalKey(Schema.String),
  start: Schema.optionalKey(Time),
  end: Schema.optionalKey(Time),
  attendees: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({ email: Schema.optionalKey(Schema.String), responseStatus: Schema.optionalKey(Schema.String) })
    )
  )
})
export interface Event extends Schema.Schema.Type<typeof Event> {}

const Page = Schema.Struct({
  items: Schema.optionalKey(Schema.Array(Event)),
  nextPageToken: Schema.optionalKey(Schema.String)
})

const Busy = Schema.Struct({ start: Schema.String, end: Schema.String })
const FreeBusy = Schema.Struct({
  calendars: Schema.Record(Schema.String, Schema.Struct({ busy: Schema.optionalKey(Schema.Array(Busy)) }))
})

/** An event to be made. `start` and `end` are RFC 3339 with an offset, or a date for a whole day. */
export interface NewEvent {
  readonly summary: string
  readonly start: string
  readonly end: string
  readonly description?: string | undefined
  readonly location?: string | undefined
  readonly attendees?: ReadonlyArray<string> | undefined
  readonly calendarId?: string | undefined
}

const timeOf = (value: string) => (/^\d{4}-\d{2}-\d{2}$/.test(value) ? { date: value } : { dateTime: value })

/** Makes a client of Google Calendar for one account. */
export const make = <R = never>({ baseUrl = "https://www.googleapis.com", connection }: Options<R>) => {
  const http = makeClient({ service: "Google Calendar", connection, refusal, baseUrl, root: "/calendar/v3" })
  return {
    /** Events in their order, single ones in the place of series. */
    events: (
      query: {
        readonly calendarId?: string | undefined
        readonly from?: string | undefined
        readonly to?: string | undefined
        readonly words?: string | undefined
      } = {}
    ) =>
      http.list(
        "list events",
        at`/calendars/${query.calendarId ?? "primary"}/events`,
        Page,
        "pageToken",
        {
          timeMin: query.from,
          timeMax: query.to,
          q: query.words,
          singleEvents: true,
          orderBy: "startTime",
          maxResults: 100
        },
        ({ items = [], nextPageToken }) => ({ items, next: nextPageToken })
      ),
    /** The times at which people or rooms are busy. */
    busy: (from: string, to: string, calendars: ReadonlyArray<string>) =>
      Effect.map(
        http.post(
          "look for free times",
          "/freeBusy",
          FreeBusy,
          { timeMin: from, timeMax: to, items: calendars.map((id) => ({ id })) },
          { isReading: true }
        ),
        ({ calendars: found }) => Object.entries(found).map(([calendar, { busy = [] }]) => ({ calendar, busy }))
      ),
    /** Makes an event, and invites its attendees. */
    createEvent: ({ attendees = [], calendarId = "primary", end, start, ...rest }: NewEvent) =>
      http.post(
        "create an event",
        at`/calendars/${calendarId}/events`,
        Event,
        { ...rest, start: timeOf(start), end: timeOf(end), attendees: attendees.map((email) => ({ email })) },
        { query: { sendUpdates: "all" } }
      ),
    /** Cancels an event, and tells its attendees. */
    deleteEvent: (id: string, calendarId = "primary") =>
      Effect.asVoid(
        http.raw("delete an event", "DELETE", at`/calendars/${calendarId}/events/${id}`, {
          query: { sendUpdates: "all" }
        })
      )
  }
}

/** Makes the tools of Google Calendar. */
export const tools = <R = never>(options: Options<R>) => {
  const calendar = make(options)
  const { listing, reading, writing } = makeTools("Google Calendar")
  const time = (what: string) => text(`${what}: RFC 3339 with an offset, such as 2026-01-31T14:00:00+01:00`)
  const calendarId = optionalText("Another calendar than the account's own")
  return [
    listing(
      "google_calendar_list_events",
      "Lists events of a calendar, by time.",
      {
        from: Schema.optionalKey(time("From")),
        to: Schema.optionalKey(time("Until")),
        words: optionalText("Words that events have"),
        calendarId,
        limit: limitField
      },
      (query) => calendar.events(query)
    ),
    reading(
      "google_calendar_find_busy",
      "Says when people are busy, to find a time that suits all.",
      {
        from: time("From"),
        to: time("Until"),
        calendars: Schema.Array(Schema.String).annotate({ description: "Addresses of people or rooms" })
      },
      ({ calendars, from, to }) => calendar.busy(from, to, calendars)
    ),
    writing(
      "google_calendar_create_event",
      "Makes an event, and sends invitations to its attendees.",
      {
        summary: Schema.String,
        start: time("Begin (or a date, for a whole day)"),
        end: time("End"),
        description: Schema.optionalKey(Schema.String),
        location: Schema.optionalKey(Schema.String),
        attendees: Schema.optionalKey(Schema.Array(Schema.String).annotate({ description: "Addresses" })),
        calendarId
      },
      calendar.createEvent
    ),
    writing(
      "google_calendar_delete_event",
      "Cancels an event, and tells its attendees.",
      { id: text("As google_calendar_list_events gave it"), calendarId },
      (args) => Effect.as(calendar.deleteEvent(args.id, args.calendarId), { deleted: args.id }),
      { destructive: true, idempotent: true }
    )
  ] as const
}
