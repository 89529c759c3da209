/**
 * HubSpot: contacts, companies, deals, tickets, and notes on them.
 *
 * The token's scopes: `crm.objects.contacts.read` and the like for each kind, `.write` for changes.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { at, limitField, makeClient, makeTools, type Options, text } from "./internal/connectors/client.ts"

export type { Options }

/** The kinds of objects that are read and written. */
export const Kind = Schema.Literals(["contacts", "companies", "deals", "tickets"])
export type Kind = typeof Kind.Type

/** Schema of an object: its properties by name. */
export const Item = Schema.Struct({
  id: Schema.String,
  properties: Schema.Record(Schema.String, Schema.NullOr(Schema.String)),
  updatedAt: Schema.optionalKey(Schema.String)
})
export interface Item extends Schema.Schema.Type<typeof Item> {}

const listOf = <S extends Schema.Constraint>(item: S) =>
  Schema.Struct({
    results: Schema.Array(item),
    paging: Schema.optionalKey(Schema.Struct({ next: Schema.optionalKey(Schema.Struct({ after: Schema.String })) }))
  })

const Items = listOf(Item)

const pageOf = <A>({
  paging,
  results
}: {
  readonly results: ReadonlyArray<A>
  readonly paging?: typeof Items.Type.paging
}) => ({
  items: results,
  next: paging?.next?.after
})

const Owner = Schema.Struct({
  id: Schema.String,
  email: Schema.optionalKey(Schema.NullOr(Schema.String)),
  firstName: Schema.optionalKey(Schema.NullOr(Schema.String)),
  lastName: Schema.optionalKey(Schema.NullOr(Schema.String))
})

const shownOf: { readonly [K in Kind]: ReadonlyArray<string> } = {
  contacts: ["email", "firstname", "lastname", "phone", "company", "jobtitle", "lifecyclestage", "hubspot_owner_id"],
  companies: ["name", "domain", "industry", "city", "country", "phone", "hubspot_owner_id"],
  deals: ["dealname", "amount", "dealstage", "pipeline", "closedate", "hubspot_owner_id"],
  tickets: ["subject", "content", "hs_pipeline_stage", "hs_ticket_priority", "hubspot_owner_id"]
}

/** HubSpot's own types of associations, from a note to another object. */
const noteTo: { readonly [K in Kind]: number } = { contacts: 202, companies: 190, deals: 214, tickets: 228 }

type Properties = Readonly<Record<string, string>>

/** Makes a client of HubSpot for one account. */
export const make = <R = never>({ baseUrl = "https://api.hubapi.com", connection }: Options<R>) => {
  const http = makeClient({ service: "HubSpot", connection, baseUrl })
  return {
    /** Objects by words of what HubSpot looks in: names, addresses, phone numbers. */
    search: (kind: Kind, query: string) =>
      http.paged(`search ${kind}`, (after: string | undefined) =>
        Effect.map(
          http.post(
            `search ${kind}`,
            `/crm/v3/objects/${kind}/search`,
            Items,
            { query, limit: 100, properties: shownOf[kind], ...(after === undefined ? {} : { after }) },
            { isReading: true }
          ),
          pageOf
        )
      ),
    list: (kind: Kind) =>
      http.list(
        `list ${kind}`,
        `/crm/v3/objects/${kind}`,
        Items,
        "after",
        { limit: 100, properties: shownOf[kind] },
        pageOf
      ),
    read: (kind: Kind, id: string) =>
      http.get(`read ${kind}`, `/crm/v3/objects/${kind}${at`/${id}`}`, Item, { properties: shownOf[kind] }),
    owners: () => http.list("list owners", "/crm/v3/owners", listOf(Owner), "after", { limit: 100 }, pageOf),
    create: (kind: Kind, properties: Properties) =>
      http.post(`create ${kind}`, `/crm/v3/objects/${kind}`, Item, { properties }),
    update: (kind: Kind, id: string, properties: Properties) =>
      http.request(`change ${kind}`, "PATCH", `/crm/v3/objects/${kind}${at`/${id}`}`, Item, { body: { properties } }),
    /** Writes a note on an object. */
    note: (kind: Kind, id: string, body: string) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        http.post("write a note", "/crm/v3/objects/notes", Item, {
          properties: { hs_note_body: body, hs_timestamp: new Date(now).toISOString() },
          associations: [
            { to: { id }, types: [{ associationCategory: "HUBSPOT_DEFINED", associationTypeId: noteTo[kind] }] }
          ]
        })
      )
  }
}

/** Makes the tools of HubSpot. */
export const tools = <R = never>(options: Options<R>) => {
  const hubspot = make(options)
  const { listing, reading, writing } = makeTools("HubSpot")
  const id = text("As hubspot_search gave it")
  const properties = Schema.Record(Schema.String, Schema.String).annotate({
    description: "By HubSpot's own names, such as email, firstname, dealname, amount"
  })
  return [
    listing(
      "hubspot_search",
      "Finds contacts, companies, deals or tickets in HubSpot.",
      { kind: Kind, query: Schema.String, limit: limitField },
      ({ kind, query }) => hubspot.search(kind, query)
    ),
    listing(
      "hubspot_list",
      "Lists contacts, companies, deals or tickets of HubSpot.",
      { kind: Kind, limit: limitField },
      ({ kind }) => hubspot.list(kind)
    ),
    reading("hubspot_get", "Reads a contact, company, deal or ticket of HubSpot.", { kind: Kind, id }, (args) =>
      hubspot.read(args.kind, args.id)
    ),
    listing("hubspot_list_owners", "Lists the people who own objects in HubSpot.", { limit: limitField }, () =>
      hubspot.owners()
    ),
    writing(
      "hubspot_create",
      "Makes a contact, company, deal or ticket in HubSpot.",
      { kind: Kind, properties },
      (args) => hubspot.create(args.kind, args.properties)
    ),
    writing(
      "hubspot_update",
      "Changes a contact, company, deal or ticket of HubSpot.",
      { kind: Kind, id, properties },
      (args) => hubspot.update(args.kind, args.id, args.properties),
      { destructive: true, idempotent: true }
    ),
    writing(
      "hubspot_add_note",
      "Writes a note on a contact, company, deal or ticket.",
      { kind: Kind, id, body: Schema.String },
      (args) => hubspot.note(args.kind, args.id, args.body)
    )
  ] as const
}
