"""JSON Schema of a device's capabilities."""

from toolcrib.apps.definition_errors import VISIBLE_LINE
from toolcrib.apps.hardware import FLAGS, LONGEST_MODEL
from toolcrib.frontends.rest.schema_terms import FLAG, OBJECT_OR_NULL, Schema, object_of, text_of

_MODEL = text_of(LONGEST_MODEL, VISIBLE_LINE)
_CAPABILITIES = object_of(
    modelName={"anyOf": [{"const": ""}, _MODEL]},
    **dict.fromkeys(FLAGS.values(), FLAG),
    **dict.fromkeys(map(str.lower, FLAGS), OBJECT_OR_NULL),
)
DEVICE: Schema = {
    "anyOf": [_MODEL, _CAPABILITIES, {"type": "null"}],
    "description": "a model's name, or capabilities; what is described, such as `camera`, needs `hasCamera`",
}
