/**
 * HubSpot: contacts, companies, deals, tickets, and notes on them.
 *
 * The token's scopes: `crm.objects.contacts.read` and the like for each kind, `.write` for changes.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { readOptions } from "../core/schema/invalid.ts"
import { check } from "../support/options/check.ts"
import { at, limitField, makeConnector, type Options, text } from "./internal/connectors/client.ts"
import * as shapes from "./internal/shapes.ts"

const Kind = Schema.Literals(["contacts", "companies", "deals", "tickets"])
type Kind = typeof Kind.Type

const Item = Schema.Struct({
  id: Schema.String,
  properties: Schema.Record(Schema.String, Schema.NullOr(Schema.String)),
  updatedAt: Schema.optionalKey(Schema.String)
})

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

const properties = Schema.Record(Schema.String, Schema.String).annotate({
  description: "By HubSpot's own names, such as email, firstname, dealname, amount"
})
const id = text("As hubspot_search gave it")
const pathOf = (kind: Kind, key?: string) => `/crm/v3/objects/${kind}${key === undefined ? "" : at`/${key}`}`

const checkTools = check(shapes.hubSpotTools)

/** Makes the tools of HubSpot. */
export const tools = <R = never>(options: Options<R>) => {
  const [{ baseUrl = "https://api.hubapi.com", connection }, problem] = readOptions(checkTools, options)
  const { change, changeBy, list, read, request } = makeConnector({ problem, service: "HubSpot", connection, baseUrl })
  return [
    list({
      name: "hubspot_search",
      about: "Finds contacts, companies, deals or tickets in HubSpot.",
      parameters: { kind: Kind, query: Schema.String, limit: limitField },
      ask: ({ kind, query }, after) => ({
        method: "POST",
        path: `${pathOf(kind)}/search`,
        body: { query, limit: 100, properties: shownOf[kind], ...(after === undefined ? {} : { after }) },
        isReading: true
      }),
      answer: Items,
      page: pageOf
    }),
    list({
      name: "hubspot_list",
      about: "Lists contacts, companies, deals or tickets of HubSpot.",
      parameters: { kind: Kind, limit: limitField },
      ask: ({ kind }, after) => ({ path: pathOf(kind), query: { limit: 100, properties: shownOf[kind], after } }),
      answer: Items,
      page: pageOf
    }),
    read({
      name: "hubspot_get",
      about: "Reads a contact, company, deal or ticket of HubSpot.",
      parameters: { kind: Kind, id },
      ask: (args) => ({ path: pathOf(args.kind, args.id), query: { properties: shownOf[args.kind] } }),
      answer: Item
    }),
    list({
      name: "hubspot_list_owners",
      about: "Lists the people who own objects in HubSpot.",
      parameters: { limit: limitField },
      ask: (_, after) => ({ path: "/crm/v3/owners", query: { limit: 100, after } }),
      answer: listOf(Owner),
      page: pageOf
    }),
    change({
      name: "hubspot_create",
      about: "Makes a contact, company, deal or ticket in HubSpot.",
      parameters: { kind: Kind, properties },
      ask: ({ kind, ...body }) => ({ method: "POST", path: pathOf(kind), body }),
      answer: Item
    }),
    change({
      name: "hubspot_update",
      about: "Changes a contact, company, deal or ticket of HubSpot.",
      parameters: { kind: Kind, id, properties },
      ask: ({ id: key, kind, ...body }) => ({ method: "PATCH", path: pathOf(kind, key), body }),
      answer: Item,
      annotations: { destructive: true, idempotent: true }
    }),
    changeBy({
      name: "hubspot_add_note",
      about: "Writes a note on a contact, company, deal or ticket.",
      parameters: { kind: Kind, id, body: Schema.String },
      work: (args) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const association = { associationCategory: "HUBSPOT_DEFINED", associationTypeId: noteTo[args.kind] }
          return request("write a note", Item, {
            method: "POST",
            path: "/crm/v3/objects/notes",
            body: {
              properties: { hs_note_body: args.body, hs_timestamp: new Date(now).toISOString() },
              associations: [{ to: { id: args.id }, types: [association] }]
            }
          })
        })
    })
  ] as const
}
