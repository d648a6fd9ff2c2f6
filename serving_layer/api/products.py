"""`/v1/products`: what SKUs are called, and which categories they are in."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from master_dataset.registry.products import Product
from master_dataset.registry.products_file import SKU_BYTES, TEXT_LENGTH, category_path
from serving_layer.admin.loaded_files import ProductService
from serving_layer.api.caller import AnswersOf, Operator, Reader
from serving_layer.api.conditional_requests import requires_fresh
from serving_layer.api.parameters import (
    MAX_PAGE,
    AfterToken,
    TenantName,
    page_token,
    read_page_token,
    registered_tenant,
)
from serving_layer.api.request_bodies import FILE_BODY, file_body
from serving_layer.errors import BadQuestionError, not_offered
from serving_layer.products.reader import ProductFilter, ProductPage, ProductPlace
from serving_layer.responses.encoding import JSON, encode, iso_instant
from serving_layer.responses.master_data import ListedProduct, LoadedProducts, ProductList
from serving_layer.responses.schemas import returns

MAX_SKUS = 1000


async def products_of(request: Request) -> ProductService:
    """The product service of the app. Raises NotOfferedError if this process has none."""
    products: ProductService | None = request.app.state.products
    if products is None:
        raise not_offered("products", "use `galatea products`")
    return products


ProductsOf = Annotated[ProductService, Depends(products_of)]


class ProductsQuery(BaseModel):
    """Query parameters of a page of products."""

    model_config = ConfigDict(extra="forbid")

    tenant: TenantName = None
    sku: list[Annotated[str, Field(min_length=1, max_length=SKU_BYTES)]] = Field(
        [], max_length=MAX_SKUS, description="Only these SKUs, on one page."
    )
    category: str = Field("", max_length=2000, description="Only products in this category or below: `Food/Dairy`.")
    search: str = Field("", max_length=TEXT_LENGTH, description="Part of a SKU, title, brand or GTIN.")
    limit: int = Field(100, ge=1, le=MAX_PAGE)
    after: AfterToken = None

    def to_filter(self) -> ProductFilter:
        """Raises BadQuestionError."""
        try:
            return ProductFilter(category_path(self.category), self.search)
        except PydanticCustomError as error:
            raise BadQuestionError(f"`category` {error.message()}.", do="Use a path such as `Food/Dairy`.") from error


class LoadQuery(BaseModel):
    """Query parameters of a load."""

    model_config = ConfigDict(extra="forbid")

    tenant: TenantName = None
    replace: bool = Field(default=False, description="Remove the SKUs that the body lacks.")


router = APIRouter(prefix="/v1", tags=["products"])


@router.get("/products", operation_id="list_products", responses=returns(ProductList))
async def list_products(
    request: Request,
    query: Annotated[ProductsQuery, Query()],
    products: ProductsOf,
    answers: AnswersOf,
    caller: Reader,
) -> Response:
    """The products of a tenant, each version of its own, in a fixed order that is not that of the SKUs.

    All versions of a SKU are on one page. A filtered page searches a part of the products only, so it may hold fewer
    than `limit`, or none, although more follow: go on until `next` is null.
    """
    tenant = await registered_tenant(caller, query.tenant, answers)
    chosen = query.to_filter()
    after = None if query.after is None else read_page_token(query.after, _place)
    current = await products.reader.master(tenant, fresh=requires_fresh(request.headers.get("cache-control")))
    if after and current and after.version != current.version:  # another process may have read a newer one
        await products.reader.master(tenant, fresh=True)
    if query.sku:
        found = await products.reader.products(tenant, query.sku)
        rows = [each for sku in sorted(found) for each in found[sku] if chosen.includes(each)]
        page = ProductPage(await products.reader.master(tenant), rows)
    else:
        page = await products.reader.page(tenant, chosen, query.limit, after)
        if after and (page.master is None or page.master.version != after.version):
            message = "The products were loaded again since the page before."
            raise BadQuestionError(message, do="Begin with the first page: leave `after` out.")
    master = page.master
    body = ProductList(
        tenant=tenant,
        version=master.version if master else None,
        loaded_at=iso_instant(master.loaded_at) if master else None,
        count=master.count if master else 0,
        products=[_listed(each) for each in page.products],
        next=None if page.following is None else page_token(*page.following),
    )
    return Response(encode(body), media_type=JSON)


@router.post(
    "/products",
    operation_id="load_products",
    status_code=HTTPStatus.OK,
    openapi_extra={"requestBody": FILE_BODY},
    responses=returns(LoadedProducts),
)
async def load_products(
    request: Request,
    query: Annotated[LoadQuery, Query()],
    products: ProductsOf,
    answers: AnswersOf,
    caller: Operator,
) -> Response:
    """Load products, all or none, at most 8 MB in a request. Needs the scope `operate`; safe to repeat.

    The versions of a SKU in the body replace all former ones of that SKU; other SKUs stay unless `replace` is true.
    Fields: `sku` and `title`, and optionally `brand`, `category` (a path such as `Food/Dairy/Milk`), `gtin` and
    `valid_from`. Queries use the new version within a second.
    """
    tenant = await registered_tenant(caller, query.tenant, answers)
    async with file_body(request, "products") as body:
        master = await products.load(tenant, body, replace=query.replace)
    loaded = LoadedProducts(tenant, master.version, master.count, iso_instant(master.loaded_at))
    return Response(encode(loaded), media_type=JSON)


def _place(version: object, bucket: int, sku: object) -> ProductPlace:
    place = ProductPlace(str(version), int(bucket), str(sku))
    if place.bucket < 0:
        raise ValueError("no such bucket")
    return place


def _listed(product: Product) -> ListedProduct:
    return ListedProduct(
        sku=product.sku,
        title=product.title,
        brand=product.brand or None,
        category="/".join(product.category) or None,
        gtin=product.gtin or None,
        valid_from=product.valid_from,
    )
