/**
 * Google Calendar: events, free times, booking.
 *
 * The account's scopes: `calendar.readonly`, and `calendar.events` for changes.
 */
import * as Schema from "effect/Schema"
import { readOptions } from "../core/schema/invalid.ts"
import { check } from "../support/options/check.ts"
import { at, limitField, makeConnector, type Options, optionalText, text } from "./internal/connectors/client.ts"
import { refusal } from "./internal/connectors/google.ts"
import * as shapes from "./internal/shapes.ts"

const Time = Schema.Struct({
  dateTime: Schema.optionalKey(Schema.String),
  date: Schema.optionalKey(Schema.String),
  timeZone: Schema.optionalKey(Schema.String)
})

const Event = Schema.Struct({
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

const Page = Schema.Struct({
  items: Schema.optionalKey(Schema.Array(Event)),
  nextPageToken: Schema.optionalKey(Schema.String)
})

const Busy = Schema.Struct({ start: Schema.String, end: Schema.String })
const FreeBusy = Schema.Struct({
  calendars: Schema.Record(Schema.String, Schema.Struct({ busy: Schema.optionalKey(Schema.Array(Busy)) }))
})

const timeOf = (value: string) => (/^\d{4}-\d{2}-\d{2}$/.test(value) ? { date: value } : { dateTime: value })

const time = (what: string) => text(`${what}: RFC 3339 with an offset, such as 2026-01-31T14:00:00+01:00`)
const calendarId = optionalText("Another calendar than the account's own")
const pathOf = (id = "primary") => at`/calendars/${id}/events`

const checkTools = check(shapes.googleCalendarTools)

/** Makes the tools of Google Calendar. */
export const tools = <R = never>(options: Options<R>) => {
  const [{ baseUrl = "https://www.googleapis.com", connection }, problem] = readOptions(checkTools, options)
  const { change, list, read, submit } = makeConnector({
    problem,
    service: "Google Calendar",
    connection,
    refusal,
    baseUrl,
    root: "/calendar/v3"
  })
  return [
    list({
      name: "google_calendar_list_events",
      about: "Lists events of a calendar, by time.",
      parameters: {
        from: Schema.optionalKey(time("From")),
        to: Schema.optionalKey(time("Until")),
        words: optionalText("Words that events have"),
        calendarId,
        limit: limitField
      },
      ask: ({ calendarId: calendar, from: timeMin, to: timeMax, words: q }, pageToken) => ({
        path: pathOf(calendar),
        query: { timeMin, timeMax, q, singleEvents: true, orderBy: "startTime", maxResults: 100, pageToken }
      }),
      answer: Page,
      page: ({ items = [], nextPageToken }) => ({ items, next: nextPageToken })
    }),
    read({
      name: "google_calendar_find_busy",
      about: "Says when people are busy, to find a time that suits all.",
      parameters: {
        from: time("From"),
        to: time("Until"),
        calendars: Schema.Array(Schema.String).annotate({ description: "Addresses of people or rooms" })
      },
      ask: ({ calendars, from: timeMin, to: timeMax }) => ({
        method: "POST",
        path: "/freeBusy",
        body: { timeMin, timeMax, items: calendars.map((id) => ({ id })) },
        isReading: true
      }),
      answer: FreeBusy,
      show: ({ calendars }) => Object.entries(calendars).map(([calendar, { busy = [] }]) => ({ calendar, busy }))
    }),
    change({
      name: "google_calendar_create_event",
      about: "Makes an event, and sends invitations to its attendees.",
      parameters: {
        summary: Schema.String,
        start: time("Begin (or a date, for a whole day)"),
        end: time("End"),
        description: Schema.optionalKey(Schema.String),
        location: Schema.optionalKey(Schema.String),
        attendees: Schema.optionalKey(Schema.Array(Schema.String).annotate({ description: "Addresses" })),
        calendarId
      },
      ask: ({ attendees = [], calendarId: calendar, end, start, ...rest }) => ({
        method: "POST",
        path: pathOf(calendar),
        query: { sendUpdates: "all" },
        body: { ...rest, start: timeOf(start), end: timeOf(end), attendees: attendees.map((email) => ({ email })) }
      }),
      answer: Event
    }),
    submit({
      name: "google_calendar_delete_event",
      about: "Cancels an event, and tells its attendees.",
      parameters: { id: text("As google_calendar_list_events gave it"), calendarId },
      ask: ({ calendarId: calendar, id }) => ({
        method: "DELETE",
        path: `${pathOf(calendar)}${at`/${id}`}`,
        query: { sendUpdates: "all" }
      }),
      done: ({ id }) => ({ deleted: id }),
      annotations: { destructive: true, idempotent: true }
    })
  ] as const
}
