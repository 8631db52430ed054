/*eslint-disable block-scoped-var, id-length, no-control-regex, no-magic-numbers, no-mixed-operators, no-prototype-builtins, no-redeclare, no-shadow, no-var, sort-vars, default-case, jsdoc/require-param*/
import $protobuf from "#protobuf";

// Common aliases
const $Reader = $protobuf.Reader, $Writer = $protobuf.Writer, $util = $protobuf.util;
const $Object = $util.global.Object, $undefined = $util.global.undefined, $Error = $util.global.Error, $RangeError = $util.global.RangeError, $TypeError = $util.global.TypeError, $Boolean = $util.global.Boolean, $String = $util.global.String, $Array = $util.global.Array, $parseInt = $util.global.parseInt, $BigInt = $util.global.BigInt, $Number = $util.global.Number, $isFinite = $util.global.isFinite;

// Exported root namespace
const $root = $protobuf.roots["tritonjs"] || ($protobuf.roots["tritonjs"] = {});

export const inference = $root.inference = (() => {
  const inference = {};

  inference.ServerLiveRequest = (function() {
    const ServerLiveRequest = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ServerLiveRequest.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ServerLiveRequest.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ServerLiveRequest();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        reader.skipType(tag & 7, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ServerLiveRequest.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ServerLiveRequest)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ServerLiveRequest: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      return new $root.inference.ServerLiveRequest();
    };

    return ServerLiveRequest;
  })();

  inference.ServerLiveResponse = (function() {
    const ServerLiveResponse = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ServerLiveResponse.prototype.live = false;

    ServerLiveResponse.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.live != null && $Object.hasOwnProperty.call(message, "live") && message.live !== false)
        writer.uint32(/* id 1, wireType 0 =*/8).bool(message.live);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ServerLiveResponse.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ServerLiveResponse();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 0)
              break;
            if (value = reader.bool())
              message.live = value;
            else
              delete message.live;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ServerLiveResponse.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ServerLiveResponse)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ServerLiveResponse: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ServerLiveResponse();
      if (object.live != null)
        if (object.live)
          message.live = $Boolean(object.live);
      return message;
    };

    return ServerLiveResponse;
  })();

  inference.ServerReadyRequest = (function() {
    const ServerReadyRequest = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ServerReadyRequest.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ServerReadyRequest.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ServerReadyRequest();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        reader.skipType(tag & 7, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ServerReadyRequest.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ServerReadyRequest)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ServerReadyRequest: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      return new $root.inference.ServerReadyRequest();
    };

    return ServerReadyRequest;
  })();

  inference.ServerReadyResponse = (function() {
    const ServerReadyResponse = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ServerReadyResponse.prototype.ready = false;

    ServerReadyResponse.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.ready != null && $Object.hasOwnProperty.call(message, "ready") && message.ready !== false)
        writer.uint32(/* id 1, wireType 0 =*/8).bool(message.ready);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ServerReadyResponse.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ServerReadyResponse();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 0)
              break;
            if (value = reader.bool())
              message.ready = value;
            else
              delete message.ready;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ServerReadyResponse.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ServerReadyResponse)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ServerReadyResponse: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ServerReadyResponse();
      if (object.ready != null)
        if (object.ready)
          message.ready = $Boolean(object.ready);
      return message;
    };

    return ServerReadyResponse;
  })();

  inference.ModelReadyRequest = (function() {
    const ModelReadyRequest = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelReadyRequest.prototype.name = "";

    ModelReadyRequest.prototype.version = "";

    ModelReadyRequest.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
        writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
      if (message.version != null && $Object.hasOwnProperty.call(message, "version") && message.version !== "")
        writer.uint32(/* id 2, wireType 2 =*/18).string(message.version);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelReadyRequest.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelReadyRequest();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.name = value;
            else
              delete message.name;
            continue;
          }
        case 2: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.version = value;
            else
              delete message.version;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelReadyRequest.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelReadyRequest)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelReadyRequest: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelReadyRequest();
      if (object.name != null)
        if (typeof object.name !== "string" || object.name.length)
          message.name = $String(object.name);
      if (object.version != null)
        if (typeof object.version !== "string" || object.version.length)
          message.version = $String(object.version);
      return message;
    };

    return ModelReadyRequest;
  })();

  inference.ModelReadyResponse = (function() {
    const ModelReadyResponse = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelReadyResponse.prototype.ready = false;

    ModelReadyResponse.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.ready != null && $Object.hasOwnProperty.call(message, "ready") && message.ready !== false)
        writer.uint32(/* id 1, wireType 0 =*/8).bool(message.ready);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelReadyResponse.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelReadyResponse();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 0)
              break;
            if (value = reader.bool())
              message.ready = value;
            else
              delete message.ready;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelReadyResponse.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelReadyResponse)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelReadyResponse: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelReadyResponse();
      if (object.ready != null)
        if (object.ready)
          message.ready = $Boolean(object.ready);
      return message;
    };

    return ModelReadyResponse;
  })();

  inference.ServerMetadataRequest = (function() {
    const ServerMetadataRequest = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ServerMetadataRequest.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ServerMetadataRequest.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ServerMetadataRequest();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        reader.skipType(tag & 7, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ServerMetadataRequest.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ServerMetadataRequest)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ServerMetadataRequest: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      return new $root.inference.ServerMetadataRequest();
    };

    return ServerMetadataRequest;
  })();

  inference.ServerMetadataResponse = (function() {
    const ServerMetadataResponse = function (properties) {
      this.extensions = [];
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ServerMetadataResponse.prototype.name = "";

    ServerMetadataResponse.prototype.version = "";

    ServerMetadataResponse.prototype.extensions = $util.emptyArray;

    ServerMetadataResponse.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
        writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
      if (message.version != null && $Object.hasOwnProperty.call(message, "version") && message.version !== "")
        writer.uint32(/* id 2, wireType 2 =*/18).string(message.version);
      if (message.extensions != null && message.extensions.length)
        for (let i = 0; i < message.extensions.length; ++i)
          writer.uint32(/* id 3, wireType 2 =*/26).string(message.extensions[i]);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ServerMetadataResponse.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ServerMetadataResponse();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.name = value;
            else
              delete message.name;
            continue;
          }
        case 2: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.version = value;
            else
              delete message.version;
            continue;
          }
        case 3: {
            if (wireType !== 2)
              break;
            if (!(message.extensions && message.extensions.length))
              message.extensions = [];
            message.extensions.push(reader.stringVerify());
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ServerMetadataResponse.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ServerMetadataResponse)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ServerMetadataResponse: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ServerMetadataResponse();
      if (object.name != null)
        if (typeof object.name !== "string" || object.name.length)
          message.name = $String(object.name);
      if (object.version != null)
        if (typeof object.version !== "string" || object.version.length)
          message.version = $String(object.version);
      if (object.extensions) {
        if (!$Array.isArray(object.extensions))
          throw $TypeError(".inference.ServerMetadataResponse.extensions: array expected");
        message.extensions = $Array(object.extensions.length);
        for (let i = 0; i < object.extensions.length; ++i)
          message.extensions[i] = $String(object.extensions[i]);
      }
      return message;
    };

    return ServerMetadataResponse;
  })();

  inference.ModelMetadataRequest = (function() {
    const ModelMetadataRequest = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelMetadataRequest.prototype.name = "";

    ModelMetadataRequest.prototype.version = "";

    ModelMetadataRequest.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
        writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
      if (message.version != null && $Object.hasOwnProperty.call(message, "version") && message.version !== "")
        writer.uint32(/* id 2, wireType 2 =*/18).string(message.version);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelMetadataRequest.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelMetadataRequest();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.name = value;
            else
              delete message.name;
            continue;
          }
        case 2: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.version = value;
            else
              delete message.version;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelMetadataRequest.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelMetadataRequest)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelMetadataRequest: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelMetadataRequest();
      if (object.name != null)
        if (typeof object.name !== "string" || object.name.length)
          message.name = $String(object.name);
      if (object.version != null)
        if (typeof object.version !== "string" || object.version.length)
          message.version = $String(object.version);
      return message;
    };

    return ModelMetadataRequest;
  })();

  inference.ModelMetadataResponse = (function() {
    const ModelMetadataResponse = function (properties) {
      this.versions = [];
      this.inputs = [];
      this.outputs = [];
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelMetadataResponse.prototype.name = "";

    ModelMetadataResponse.prototype.versions = $util.emptyArray;

    ModelMetadataResponse.prototype.platform = "";

    ModelMetadataResponse.prototype.inputs = $util.emptyArray;

    ModelMetadataResponse.prototype.outputs = $util.emptyArray;

    ModelMetadataResponse.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
        writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
      if (message.versions != null && message.versions.length)
        for (let i = 0; i < message.versions.length; ++i)
          writer.uint32(/* id 2, wireType 2 =*/18).string(message.versions[i]);
      if (message.platform != null && $Object.hasOwnProperty.call(message, "platform") && message.platform !== "")
        writer.uint32(/* id 3, wireType 2 =*/26).string(message.platform);
      if (message.inputs != null && message.inputs.length)
        for (let i = 0; i < message.inputs.length; ++i)
          $root.inference.ModelMetadataResponse.TensorMetadata.encode(message.inputs[i], writer.uint32(/* id 4, wireType 2 =*/34).fork(), _depth + 1).ldelim();
      if (message.outputs != null && message.outputs.length)
        for (let i = 0; i < message.outputs.length; ++i)
          $root.inference.ModelMetadataResponse.TensorMetadata.encode(message.outputs[i], writer.uint32(/* id 5, wireType 2 =*/42).fork(), _depth + 1).ldelim();
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelMetadataResponse.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelMetadataResponse();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.name = value;
            else
              delete message.name;
            continue;
          }
        case 2: {
            if (wireType !== 2)
              break;
            if (!(message.versions && message.versions.length))
              message.versions = [];
            message.versions.push(reader.stringVerify());
            continue;
          }
        case 3: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.platform = value;
            else
              delete message.platform;
            continue;
          }
        case 4: {
            if (wireType !== 2)
              break;
            if (!(message.inputs && message.inputs.length))
              message.inputs = [];
            message.inputs.push($root.inference.ModelMetadataResponse.TensorMetadata.decode(reader, reader.size(), $undefined, _depth + 1));
            continue;
          }
        case 5: {
            if (wireType !== 2)
              break;
            if (!(message.outputs && message.outputs.length))
              message.outputs = [];
            message.outputs.push($root.inference.ModelMetadataResponse.TensorMetadata.decode(reader, reader.size(), $undefined, _depth + 1));
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelMetadataResponse.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelMetadataResponse)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelMetadataResponse: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelMetadataResponse();
      if (object.name != null)
        if (typeof object.name !== "string" || object.name.length)
          message.name = $String(object.name);
      if (object.versions) {
        if (!$Array.isArray(object.versions))
          throw $TypeError(".inference.ModelMetadataResponse.versions: array expected");
        message.versions = $Array(object.versions.length);
        for (let i = 0; i < object.versions.length; ++i)
          message.versions[i] = $String(object.versions[i]);
      }
      if (object.platform != null)
        if (typeof object.platform !== "string" || object.platform.length)
          message.platform = $String(object.platform);
      if (object.inputs) {
        if (!$Array.isArray(object.inputs))
          throw $TypeError(".inference.ModelMetadataResponse.inputs: array expected");
        message.inputs = $Array(object.inputs.length);
        for (let i = 0; i < object.inputs.length; ++i) {
          if (!$util.isObject(object.inputs[i]))
            throw $TypeError(".inference.ModelMetadataResponse.inputs: object expected");
          message.inputs[i] = $root.inference.ModelMetadataResponse.TensorMetadata.fromObject(object.inputs[i], _depth + 1);
        }
      }
      if (object.outputs) {
        if (!$Array.isArray(object.outputs))
          throw $TypeError(".inference.ModelMetadataResponse.outputs: array expected");
        message.outputs = $Array(object.outputs.length);
        for (let i = 0; i < object.outputs.length; ++i) {
          if (!$util.isObject(object.outputs[i]))
            throw $TypeError(".inference.ModelMetadataResponse.outputs: object expected");
          message.outputs[i] = $root.inference.ModelMetadataResponse.TensorMetadata.fromObject(object.outputs[i], _depth + 1);
        }
      }
      return message;
    };

    ModelMetadataResponse.TensorMetadata = (function() {
      const TensorMetadata = function (properties) {
        this.shape = [];
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      TensorMetadata.prototype.name = "";

      TensorMetadata.prototype.datatype = "";

      TensorMetadata.prototype.shape = $util.emptyArray;

      TensorMetadata.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
          writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
        if (message.datatype != null && $Object.hasOwnProperty.call(message, "datatype") && message.datatype !== "")
          writer.uint32(/* id 2, wireType 2 =*/18).string(message.datatype);
        if (message.shape != null && message.shape.length)
          writer.uint32(/* id 3, wireType 2 =*/26).int64s(message.shape);
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      TensorMetadata.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message, value;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.ModelMetadataResponse.TensorMetadata();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 2)
                break;
              if ((value = reader.stringVerify()).length)
                message.name = value;
              else
                delete message.name;
              continue;
            }
          case 2: {
              if (wireType !== 2)
                break;
              if ((value = reader.stringVerify()).length)
                message.datatype = value;
              else
                delete message.datatype;
              continue;
            }
          case 3: {
              if (wireType === 2) {
                if (!(message.shape && message.shape.length))
                  message.shape = [];
                reader.int64s(message.shape);
                continue;
              }
              if (wireType !== 0)
                break;
              if (!(message.shape && message.shape.length))
                message.shape = [];
              message.shape.push(reader.int64());
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      TensorMetadata.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.ModelMetadataResponse.TensorMetadata)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.ModelMetadataResponse.TensorMetadata: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.ModelMetadataResponse.TensorMetadata();
        if (object.name != null)
          if (typeof object.name !== "string" || object.name.length)
            message.name = $String(object.name);
        if (object.datatype != null)
          if (typeof object.datatype !== "string" || object.datatype.length)
            message.datatype = $String(object.datatype);
        if (object.shape) {
          if (!$Array.isArray(object.shape))
            throw $TypeError(".inference.ModelMetadataResponse.TensorMetadata.shape: array expected");
          message.shape = $Array(object.shape.length);
          for (let i = 0; i < object.shape.length; ++i)
            if ($util.Long)
              message.shape[i] = $util.Long.fromValue(object.shape[i], false);
            else if (typeof object.shape[i] === "string")
              message.shape[i] = $parseInt(object.shape[i], 10);
            else if (typeof object.shape[i] === "number")
              message.shape[i] = object.shape[i];
            else if (typeof object.shape[i] === "object")
              message.shape[i] = new $util.LongBits(object.shape[i].low >>> 0, object.shape[i].high >>> 0).toNumber();
        }
        return message;
      };

      return TensorMetadata;
    })();

    return ModelMetadataResponse;
  })();

  inference.InferParameter = (function() {
    const InferParameter = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    InferParameter.prototype.boolParam = null;

    InferParameter.prototype.int64Param = null;

    InferParameter.prototype.stringParam = null;

    InferParameter.prototype.doubleParam = null;

    InferParameter.prototype.uint64Param = null;

    // OneOf field names bound to virtual getters and setters
    let $oneOfFields;

    $Object.defineProperty(InferParameter.prototype, "parameterChoice", {
      get: $util.oneOfGetter($oneOfFields = ["boolParam", "int64Param", "stringParam", "doubleParam", "uint64Param"]),
      set: $util.oneOfSetter($oneOfFields)
    });

    InferParameter.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.boolParam != null && $Object.hasOwnProperty.call(message, "boolParam"))
        writer.uint32(/* id 1, wireType 0 =*/8).bool(message.boolParam);
      if (message.int64Param != null && $Object.hasOwnProperty.call(message, "int64Param"))
        writer.uint32(/* id 2, wireType 0 =*/16).int64(message.int64Param);
      if (message.stringParam != null && $Object.hasOwnProperty.call(message, "stringParam"))
        writer.uint32(/* id 3, wireType 2 =*/26).string(message.stringParam);
      if (message.doubleParam != null && $Object.hasOwnProperty.call(message, "doubleParam"))
        writer.uint32(/* id 4, wireType 1 =*/33).double(message.doubleParam);
      if (message.uint64Param != null && $Object.hasOwnProperty.call(message, "uint64Param"))
        writer.uint32(/* id 5, wireType 0 =*/40).uint64(message.uint64Param);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    InferParameter.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.InferParameter();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 0)
              break;
            message.boolParam = reader.bool();
            message.parameterChoice = "boolParam";
            continue;
          }
        case 2: {
            if (wireType !== 0)
              break;
            message.int64Param = reader.int64();
            message.parameterChoice = "int64Param";
            continue;
          }
        case 3: {
            if (wireType !== 2)
              break;
            message.stringParam = reader.stringVerify();
            message.parameterChoice = "stringParam";
            continue;
          }
        case 4: {
            if (wireType !== 1)
              break;
            message.doubleParam = reader.double();
            message.parameterChoice = "doubleParam";
            continue;
          }
        case 5: {
            if (wireType !== 0)
              break;
            message.uint64Param = reader.uint64();
            message.parameterChoice = "uint64Param";
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    InferParameter.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.InferParameter)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.InferParameter: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.InferParameter();
      if (object.boolParam != null)
        message.boolParam = $Boolean(object.boolParam);
      if (object.int64Param != null)
        if ($util.Long)
          message.int64Param = $util.Long.fromValue(object.int64Param, false);
        else if (typeof object.int64Param === "string")
          message.int64Param = $parseInt(object.int64Param, 10);
        else if (typeof object.int64Param === "number")
          message.int64Param = object.int64Param;
        else if (typeof object.int64Param === "object")
          message.int64Param = new $util.LongBits(object.int64Param.low >>> 0, object.int64Param.high >>> 0).toNumber();
      if (object.stringParam != null)
        message.stringParam = $String(object.stringParam);
      if (object.doubleParam != null)
        message.doubleParam = $Number(object.doubleParam);
      if (object.uint64Param != null)
        if ($util.Long)
          message.uint64Param = $util.Long.fromValue(object.uint64Param, true);
        else if (typeof object.uint64Param === "string")
          message.uint64Param = $parseInt(object.uint64Param, 10);
        else if (typeof object.uint64Param === "number")
          message.uint64Param = object.uint64Param;
        else if (typeof object.uint64Param === "object")
          message.uint64Param = new $util.LongBits(object.uint64Param.low >>> 0, object.uint64Param.high >>> 0).toNumber(true);
      return message;
    };

    return InferParameter;
  })();

  inference.InferTensorContents = (function() {
    const InferTensorContents = function (properties) {
      this.boolContents = [];
      this.intContents = [];
      this.int64Contents = [];
      this.uintContents = [];
      this.uint64Contents = [];
      this.fp32Contents = [];
      this.fp64Contents = [];
      this.bytesContents = [];
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    InferTensorContents.prototype.boolContents = $util.emptyArray;

    InferTensorContents.prototype.intContents = $util.emptyArray;

    InferTensorContents.prototype.int64Contents = $util.emptyArray;

    InferTensorContents.prototype.uintContents = $util.emptyArray;

    InferTensorContents.prototype.uint64Contents = $util.emptyArray;

    InferTensorContents.prototype.fp32Contents = $util.emptyArray;

    InferTensorContents.prototype.fp64Contents = $util.emptyArray;

    InferTensorContents.prototype.bytesContents = $util.emptyArray;

    InferTensorContents.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.boolContents != null && message.boolContents.length)
        writer.uint32(/* id 1, wireType 2 =*/10).bools(message.boolContents);
      if (message.intContents != null && message.intContents.length)
        writer.uint32(/* id 2, wireType 2 =*/18).int32s(message.intContents);
      if (message.int64Contents != null && message.int64Contents.length)
        writer.uint32(/* id 3, wireType 2 =*/26).int64s(message.int64Contents);
      if (message.uintContents != null && message.uintContents.length)
        writer.uint32(/* id 4, wireType 2 =*/34).uint32s(message.uintContents);
      if (message.uint64Contents != null && message.uint64Contents.length)
        writer.uint32(/* id 5, wireType 2 =*/42).uint64s(message.uint64Contents);
      if (message.fp32Contents != null && message.fp32Contents.length)
        writer.uint32(/* id 6, wireType 2 =*/50).floats(message.fp32Contents);
      if (message.fp64Contents != null && message.fp64Contents.length)
        writer.uint32(/* id 7, wireType 2 =*/58).doubles(message.fp64Contents);
      if (message.bytesContents != null && message.bytesContents.length)
        for (let i = 0; i < message.bytesContents.length; ++i)
          writer.uint32(/* id 8, wireType 2 =*/66).bytes(message.bytesContents[i]);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    InferTensorContents.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.InferTensorContents();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType === 2) {
              if (!(message.boolContents && message.boolContents.length))
                message.boolContents = [];
              message.boolContents = reader.packed("bool", message.boolContents);
              continue;
            }
            if (wireType !== 0)
              break;
            if (!(message.boolContents && message.boolContents.length))
              message.boolContents = [];
            message.boolContents = reader.added(message.boolContents, reader.bool());
            continue;
          }
        case 2: {
            if (wireType === 2) {
              if (!(message.intContents && message.intContents.length))
                message.intContents = [];
              message.intContents = reader.packed("int32", message.intContents);
              continue;
            }
            if (wireType !== 0)
              break;
            if (!(message.intContents && message.intContents.length))
              message.intContents = [];
            message.intContents = reader.added(message.intContents, reader.int32());
            continue;
          }
        case 3: {
            if (wireType === 2) {
              if (!(message.int64Contents && message.int64Contents.length))
                message.int64Contents = [];
              message.int64Contents = reader.packed("int64", message.int64Contents);
              continue;
            }
            if (wireType !== 0)
              break;
            if (!(message.int64Contents && message.int64Contents.length))
              message.int64Contents = [];
            message.int64Contents = reader.added(message.int64Contents, reader.int64());
            continue;
          }
        case 4: {
            if (wireType === 2) {
              if (!(message.uintContents && message.uintContents.length))
                message.uintContents = [];
              message.uintContents = reader.packed("uint32", message.uintContents);
              continue;
            }
            if (wireType !== 0)
              break;
            if (!(message.uintContents && message.uintContents.length))
              message.uintContents = [];
            message.uintContents = reader.added(message.uintContents, reader.uint32());
            continue;
          }
        case 5: {
            if (wireType === 2) {
              if (!(message.uint64Contents && message.uint64Contents.length))
                message.uint64Contents = [];
              message.uint64Contents = reader.packed("uint64", message.uint64Contents);
              continue;
            }
            if (wireType !== 0)
              break;
            if (!(message.uint64Contents && message.uint64Contents.length))
              message.uint64Contents = [];
            message.uint64Contents = reader.added(message.uint64Contents, reader.uint64());
            continue;
          }
        case 6: {
            if (wireType === 2) {
              if (!(message.fp32Contents && message.fp32Contents.length))
                message.fp32Contents = [];
              message.fp32Contents = reader.packed("float", message.fp32Contents);
              continue;
            }
            if (wireType !== 5)
              break;
            if (!(message.fp32Contents && message.fp32Contents.length))
              message.fp32Contents = [];
            message.fp32Contents = reader.added(message.fp32Contents, reader.float());
            continue;
          }
        case 7: {
            if (wireType === 2) {
              if (!(message.fp64Contents && message.fp64Contents.length))
                message.fp64Contents = [];
              message.fp64Contents = reader.packed("double", message.fp64Contents);
              continue;
            }
            if (wireType !== 1)
              break;
            if (!(message.fp64Contents && message.fp64Contents.length))
              message.fp64Contents = [];
            message.fp64Contents = reader.added(message.fp64Contents, reader.double());
            continue;
          }
        case 8: {
            if (wireType !== 2)
              break;
            if (!(message.bytesContents && message.bytesContents.length))
              message.bytesContents = [];
            message.bytesContents = reader.strings(message.bytesContents, 66);
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    InferTensorContents.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.InferTensorContents)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.InferTensorContents: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.InferTensorContents();
      if (object.boolContents) {
        if (!$Array.isArray(object.boolContents))
          throw $TypeError(".inference.InferTensorContents.boolContents: array expected");
        message.boolContents = $Array(object.boolContents.length);
        for (let i = 0; i < object.boolContents.length; ++i)
          message.boolContents[i] = $Boolean(object.boolContents[i]);
      }
      if (object.intContents) {
        if (!$Array.isArray(object.intContents))
          throw $TypeError(".inference.InferTensorContents.intContents: array expected");
        message.intContents = $Array(object.intContents.length);
        for (let i = 0; i < object.intContents.length; ++i)
          message.intContents[i] = object.intContents[i] | 0;
      }
      if (object.int64Contents) {
        if (!$Array.isArray(object.int64Contents))
          throw $TypeError(".inference.InferTensorContents.int64Contents: array expected");
        message.int64Contents = $Array(object.int64Contents.length);
        for (let i = 0; i < object.int64Contents.length; ++i)
          if ($util.Long)
            message.int64Contents[i] = $util.Long.fromValue(object.int64Contents[i], false);
          else if (typeof object.int64Contents[i] === "string")
            message.int64Contents[i] = $parseInt(object.int64Contents[i], 10);
          else if (typeof object.int64Contents[i] === "number")
            message.int64Contents[i] = object.int64Contents[i];
          else if (typeof object.int64Contents[i] === "object")
            message.int64Contents[i] = new $util.LongBits(object.int64Contents[i].low >>> 0, object.int64Contents[i].high >>> 0).toNumber();
      }
      if (object.uintContents) {
        if (!$Array.isArray(object.uintContents))
          throw $TypeError(".inference.InferTensorContents.uintContents: array expected");
        message.uintContents = $Array(object.uintContents.length);
        for (let i = 0; i < object.uintContents.length; ++i)
          message.uintContents[i] = object.uintContents[i] >>> 0;
      }
      if (object.uint64Contents) {
        if (!$Array.isArray(object.uint64Contents))
          throw $TypeError(".inference.InferTensorContents.uint64Contents: array expected");
        message.uint64Contents = $Array(object.uint64Contents.length);
        for (let i = 0; i < object.uint64Contents.length; ++i)
          if ($util.Long)
            message.uint64Contents[i] = $util.Long.fromValue(object.uint64Contents[i], true);
          else if (typeof object.uint64Contents[i] === "string")
            message.uint64Contents[i] = $parseInt(object.uint64Contents[i], 10);
          else if (typeof object.uint64Contents[i] === "number")
            message.uint64Contents[i] = object.uint64Contents[i];
          else if (typeof object.uint64Contents[i] === "object")
            message.uint64Contents[i] = new $util.LongBits(object.uint64Contents[i].low >>> 0, object.uint64Contents[i].high >>> 0).toNumber(true);
      }
      if (object.fp32Contents) {
        if (!$Array.isArray(object.fp32Contents))
          throw $TypeError(".inference.InferTensorContents.fp32Contents: array expected");
        message.fp32Contents = $Array(object.fp32Contents.length);
        for (let i = 0; i < object.fp32Contents.length; ++i)
          message.fp32Contents[i] = $Number(object.fp32Contents[i]);
      }
      if (object.fp64Contents) {
        if (!$Array.isArray(object.fp64Contents))
          throw $TypeError(".inference.InferTensorContents.fp64Contents: array expected");
        message.fp64Contents = $Array(object.fp64Contents.length);
        for (let i = 0; i < object.fp64Contents.length; ++i)
          message.fp64Contents[i] = $Number(object.fp64Contents[i]);
      }
      if (object.bytesContents) {
        if (!$Array.isArray(object.bytesContents))
          throw $TypeError(".inference.InferTensorContents.bytesContents: array expected");
        message.bytesContents = $Array(object.bytesContents.length);
        for (let i = 0; i < object.bytesContents.length; ++i)
          if (typeof object.bytesContents[i] === "string")
            $util.base64.decode(object.bytesContents[i], message.bytesContents[i] = $util.newBuffer($util.base64.length(object.bytesContents[i])), 0);
          else if (object.bytesContents[i].length >= 0)
            message.bytesContents[i] = object.bytesContents[i];
      }
      return message;
    };

    return InferTensorContents;
  })();

  inference.ModelInferRequest = (function() {
    const ModelInferRequest = function (properties) {
      this.parameters = {};
      this.inputs = [];
      this.outputs = [];
      this.rawInputContents = [];
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelInferRequest.prototype.modelName = "";

    ModelInferRequest.prototype.modelVersion = "";

    ModelInferRequest.prototype.id = "";

    ModelInferRequest.prototype.parameters = $util.emptyObject;

    ModelInferRequest.prototype.inputs = $util.emptyArray;

    ModelInferRequest.prototype.outputs = $util.emptyArray;

    ModelInferRequest.prototype.rawInputContents = $util.emptyArray;

    ModelInferRequest.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.modelName != null && $Object.hasOwnProperty.call(message, "modelName") && message.modelName !== "")
        writer.uint32(/* id 1, wireType 2 =*/10).string(message.modelName);
      if (message.modelVersion != null && $Object.hasOwnProperty.call(message, "modelVersion") && message.modelVersion !== "")
        writer.uint32(/* id 2, wireType 2 =*/18).string(message.modelVersion);
      if (message.id != null && $Object.hasOwnProperty.call(message, "id") && message.id !== "")
        writer.uint32(/* id 3, wireType 2 =*/26).string(message.id);
      if (message.parameters != null && $Object.hasOwnProperty.call(message, "parameters"))
        for (let keys = $Object.keys(message.parameters), i = 0; i < keys.length; ++i) {
          writer.uint32(/* id 4, wireType 2 =*/34).fork().uint32(/* id 1, wireType 2 =*/10).string(keys[i]);
          $root.inference.InferParameter.encode(message.parameters[keys[i]], writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim().ldelim();
        }
      if (message.inputs != null && message.inputs.length)
        for (let i = 0; i < message.inputs.length; ++i)
          $root.inference.ModelInferRequest.InferInputTensor.encode(message.inputs[i], writer.uint32(/* id 5, wireType 2 =*/42).fork(), _depth + 1).ldelim();
      if (message.outputs != null && message.outputs.length)
        for (let i = 0; i < message.outputs.length; ++i)
          $root.inference.ModelInferRequest.InferRequestedOutputTensor.encode(message.outputs[i], writer.uint32(/* id 6, wireType 2 =*/50).fork(), _depth + 1).ldelim();
      if (message.rawInputContents != null && message.rawInputContents.length)
        for (let i = 0; i < message.rawInputContents.length; ++i)
          writer.uint32(/* id 7, wireType 2 =*/58).bytes(message.rawInputContents[i]);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelInferRequest.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, key, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelInferRequest();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.modelName = value;
            else
              delete message.modelName;
            continue;
          }
        case 2: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.modelVersion = value;
            else
              delete message.modelVersion;
            continue;
          }
        case 3: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.id = value;
            else
              delete message.id;
            continue;
          }
        case 4: {
            if (wireType !== 2)
              break;
            if (message.parameters === $util.emptyObject)
              message.parameters = {};
            let end2 = reader.size() + reader.pos;
            if (end2 > reader.len)
              throw $RangeError("index out of range");
            reader.len = end2;
            key = "";
            value = null;
            while (reader.pos < end2) {
              let tag2 = reader.tag();
              wireType = tag2 & 7;
              switch (tag2 >>>= 3) {
              case 1:
                if (wireType !== 2)
                  break;
                key = reader.stringVerify();
                continue;
              case 2:
                if (wireType !== 2)
                  break;
                value = $root.inference.InferParameter.decode(reader, reader.size(), $undefined, _depth + 1, value);
                continue;
              }
              reader.skipType(wireType, _depth, tag2);
            }
            if (reader.pos !== end2)
              throw $RangeError("index out of range");
            reader.len = end;
            if (key === "__proto__")
              $util.makeProp(message.parameters, key);
            message.parameters[key] = value || new $root.inference.InferParameter();
            continue;
          }
        case 5: {
            if (wireType !== 2)
              break;
            if (!(message.inputs && message.inputs.length))
              message.inputs = [];
            message.inputs.push($root.inference.ModelInferRequest.InferInputTensor.decode(reader, reader.size(), $undefined, _depth + 1));
            continue;
          }
        case 6: {
            if (wireType !== 2)
              break;
            if (!(message.outputs && message.outputs.length))
              message.outputs = [];
            message.outputs.push($root.inference.ModelInferRequest.InferRequestedOutputTensor.decode(reader, reader.size(), $undefined, _depth + 1));
            continue;
          }
        case 7: {
            if (wireType !== 2)
              break;
            if (!(message.rawInputContents && message.rawInputContents.length))
              message.rawInputContents = [];
            message.rawInputContents.push(reader.bytes());
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelInferRequest.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelInferRequest)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelInferRequest: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelInferRequest();
      if (object.modelName != null)
        if (typeof object.modelName !== "string" || object.modelName.length)
          message.modelName = $String(object.modelName);
      if (object.modelVersion != null)
        if (typeof object.modelVersion !== "string" || object.modelVersion.length)
          message.modelVersion = $String(object.modelVersion);
      if (object.id != null)
        if (typeof object.id !== "string" || object.id.length)
          message.id = $String(object.id);
      if (object.parameters) {
        if (!$util.isObject(object.parameters))
          throw $TypeError(".inference.ModelInferRequest.parameters: object expected");
        message.parameters = {};
        for (let keys = $Object.keys(object.parameters), i = 0; i < keys.length; ++i) {
          if (keys[i] === "__proto__")
            $util.makeProp(message.parameters, keys[i]);
          if (!$util.isObject(object.parameters[keys[i]]))
            throw $TypeError(".inference.ModelInferRequest.parameters: object expected");
          message.parameters[keys[i]] = $root.inference.InferParameter.fromObject(object.parameters[keys[i]], _depth + 1);
        }
      }
      if (object.inputs) {
        if (!$Array.isArray(object.inputs))
          throw $TypeError(".inference.ModelInferRequest.inputs: array expected");
        message.inputs = $Array(object.inputs.length);
        for (let i = 0; i < object.inputs.length; ++i) {
          if (!$util.isObject(object.inputs[i]))
            throw $TypeError(".inference.ModelInferRequest.inputs: object expected");
          message.inputs[i] = $root.inference.ModelInferRequest.InferInputTensor.fromObject(object.inputs[i], _depth + 1);
        }
      }
      if (object.outputs) {
        if (!$Array.isArray(object.outputs))
          throw $TypeError(".inference.ModelInferRequest.outputs: array expected");
        message.outputs = $Array(object.outputs.length);
        for (let i = 0; i < object.outputs.length; ++i) {
          if (!$util.isObject(object.outputs[i]))
            throw $TypeError(".inference.ModelInferRequest.outputs: object expected");
          message.outputs[i] = $root.inference.ModelInferRequest.InferRequestedOutputTensor.fromObject(object.outputs[i], _depth + 1);
        }
      }
      if (object.rawInputContents) {
        if (!$Array.isArray(object.rawInputContents))
          throw $TypeError(".inference.ModelInferRequest.rawInputContents: array expected");
        message.rawInputContents = $Array(object.rawInputContents.length);
        for (let i = 0; i < object.rawInputContents.length; ++i)
          if (typeof object.rawInputContents[i] === "string")
            $util.base64.decode(object.rawInputContents[i], message.rawInputContents[i] = $util.newBuffer($util.base64.length(object.rawInputContents[i])), 0);
          else if (object.rawInputContents[i].length >= 0)
            message.rawInputContents[i] = object.rawInputContents[i];
      }
      return message;
    };

    ModelInferRequest.InferInputTensor = (function() {
      const InferInputTensor = function (properties) {
        this.shape = [];
        this.parameters = {};
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      InferInputTensor.prototype.name = "";

      InferInputTensor.prototype.datatype = "";

      InferInputTensor.prototype.shape = $util.emptyArray;

      InferInputTensor.prototype.parameters = $util.emptyObject;

      InferInputTensor.prototype.contents = null;

      InferInputTensor.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
          writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
        if (message.datatype != null && $Object.hasOwnProperty.call(message, "datatype") && message.datatype !== "")
          writer.uint32(/* id 2, wireType 2 =*/18).string(message.datatype);
        if (message.shape != null && message.shape.length)
          writer.uint32(/* id 3, wireType 2 =*/26).int64s(message.shape);
        if (message.parameters != null && $Object.hasOwnProperty.call(message, "parameters"))
          for (let keys = $Object.keys(message.parameters), i = 0; i < keys.length; ++i) {
            writer.uint32(/* id 4, wireType 2 =*/34).fork().uint32(/* id 1, wireType 2 =*/10).string(keys[i]);
            $root.inference.InferParameter.encode(message.parameters[keys[i]], writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim().ldelim();
          }
        if (message.contents != null && $Object.hasOwnProperty.call(message, "contents"))
          $root.inference.InferTensorContents.encode(message.contents, writer.uint32(/* id 5, wireType 2 =*/42).fork(), _depth + 1).ldelim();
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      InferInputTensor.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message, key, value;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.ModelInferRequest.InferInputTensor();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 2)
                break;
              if ((value = reader.stringVerify()).length)
                message.name = value;
              else
                delete message.name;
              continue;
            }
          case 2: {
              if (wireType !== 2)
                break;
              if ((value = reader.stringVerify()).length)
                message.datatype = value;
              else
                delete message.datatype;
              continue;
            }
          case 3: {
              if (wireType === 2) {
                if (!(message.shape && message.shape.length))
                  message.shape = [];
                reader.int64s(message.shape);
                continue;
              }
              if (wireType !== 0)
                break;
              if (!(message.shape && message.shape.length))
                message.shape = [];
              message.shape.push(reader.int64());
              continue;
            }
          case 4: {
              if (wireType !== 2)
                break;
              if (message.parameters === $util.emptyObject)
                message.parameters = {};
              let end2 = reader.size() + reader.pos;
              if (end2 > reader.len)
                throw $RangeError("index out of range");
              reader.len = end2;
              key = "";
              value = null;
              while (reader.pos < end2) {
                let tag2 = reader.tag();
                wireType = tag2 & 7;
                switch (tag2 >>>= 3) {
                case 1:
                  if (wireType !== 2)
                    break;
                  key = reader.stringVerify();
                  continue;
                case 2:
                  if (wireType !== 2)
                    break;
                  value = $root.inference.InferParameter.decode(reader, reader.size(), $undefined, _depth + 1, value);
                  continue;
                }
                reader.skipType(wireType, _depth, tag2);
              }
              if (reader.pos !== end2)
                throw $RangeError("index out of range");
              reader.len = end;
              if (key === "__proto__")
                $util.makeProp(message.parameters, key);
              message.parameters[key] = value || new $root.inference.InferParameter();
              continue;
            }
          case 5: {
              if (wireType !== 2)
                break;
              message.contents = $root.inference.InferTensorContents.decode(reader, reader.size(), $undefined, _depth + 1, message.contents);
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      InferInputTensor.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.ModelInferRequest.InferInputTensor)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.ModelInferRequest.InferInputTensor: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.ModelInferRequest.InferInputTensor();
        if (object.name != null)
          if (typeof object.name !== "string" || object.name.length)
            message.name = $String(object.name);
        if (object.datatype != null)
          if (typeof object.datatype !== "string" || object.datatype.length)
            message.datatype = $String(object.datatype);
        if (object.shape) {
          if (!$Array.isArray(object.shape))
            throw $TypeError(".inference.ModelInferRequest.InferInputTensor.shape: array expected");
          message.shape = $Array(object.shape.length);
          for (let i = 0; i < object.shape.length; ++i)
            if ($util.Long)
              message.shape[i] = $util.Long.fromValue(object.shape[i], false);
            else if (typeof object.shape[i] === "string")
              message.shape[i] = $parseInt(object.shape[i], 10);
            else if (typeof object.shape[i] === "number")
              message.shape[i] = object.shape[i];
            else if (typeof object.shape[i] === "object")
              message.shape[i] = new $util.LongBits(object.shape[i].low >>> 0, object.shape[i].high >>> 0).toNumber();
        }
        if (object.parameters) {
          if (!$util.isObject(object.parameters))
            throw $TypeError(".inference.ModelInferRequest.InferInputTensor.parameters: object expected");
          message.parameters = {};
          for (let keys = $Object.keys(object.parameters), i = 0; i < keys.length; ++i) {
            if (keys[i] === "__proto__")
              $util.makeProp(message.parameters, keys[i]);
            if (!$util.isObject(object.parameters[keys[i]]))
              throw $TypeError(".inference.ModelInferRequest.InferInputTensor.parameters: object expected");
            message.parameters[keys[i]] = $root.inference.InferParameter.fromObject(object.parameters[keys[i]], _depth + 1);
          }
        }
        if (object.contents != null) {
          if (!$util.isObject(object.contents))
            throw $TypeError(".inference.ModelInferRequest.InferInputTensor.contents: object expected");
          message.contents = $root.inference.InferTensorContents.fromObject(object.contents, _depth + 1);
        }
        return message;
      };

      return InferInputTensor;
    })();

    ModelInferRequest.InferRequestedOutputTensor = (function() {
      const InferRequestedOutputTensor = function (properties) {
        this.parameters = {};
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      InferRequestedOutputTensor.prototype.name = "";

      InferRequestedOutputTensor.prototype.parameters = $util.emptyObject;

      InferRequestedOutputTensor.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
          writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
        if (message.parameters != null && $Object.hasOwnProperty.call(message, "parameters"))
          for (let keys = $Object.keys(message.parameters), i = 0; i < keys.length; ++i) {
            writer.uint32(/* id 2, wireType 2 =*/18).fork().uint32(/* id 1, wireType 2 =*/10).string(keys[i]);
            $root.inference.InferParameter.encode(message.parameters[keys[i]], writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim().ldelim();
          }
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      InferRequestedOutputTensor.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message, key, value;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.ModelInferRequest.InferRequestedOutputTensor();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 2)
                break;
              if ((value = reader.stringVerify()).length)
                message.name = value;
              else
                delete message.name;
              continue;
            }
          case 2: {
              if (wireType !== 2)
                break;
              if (message.parameters === $util.emptyObject)
                message.parameters = {};
              let end2 = reader.size() + reader.pos;
              if (end2 > reader.len)
                throw $RangeError("index out of range");
              reader.len = end2;
              key = "";
              value = null;
              while (reader.pos < end2) {
                let tag2 = reader.tag();
                wireType = tag2 & 7;
                switch (tag2 >>>= 3) {
                case 1:
                  if (wireType !== 2)
                    break;
                  key = reader.stringVerify();
                  continue;
                case 2:
                  if (wireType !== 2)
                    break;
                  value = $root.inference.InferParameter.decode(reader, reader.size(), $undefined, _depth + 1, value);
                  continue;
                }
                reader.skipType(wireType, _depth, tag2);
              }
              if (reader.pos !== end2)
                throw $RangeError("index out of range");
              reader.len = end;
              if (key === "__proto__")
                $util.makeProp(message.parameters, key);
              message.parameters[key] = value || new $root.inference.InferParameter();
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      InferRequestedOutputTensor.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.ModelInferRequest.InferRequestedOutputTensor)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.ModelInferRequest.InferRequestedOutputTensor: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.ModelInferRequest.InferRequestedOutputTensor();
        if (object.name != null)
          if (typeof object.name !== "string" || object.name.length)
            message.name = $String(object.name);
        if (object.parameters) {
          if (!$util.isObject(object.parameters))
            throw $TypeError(".inference.ModelInferRequest.InferRequestedOutputTensor.parameters: object expected");
          message.parameters = {};
          for (let keys = $Object.keys(object.parameters), i = 0; i < keys.length; ++i) {
            if (keys[i] === "__proto__")
              $util.makeProp(message.parameters, keys[i]);
            if (!$util.isObject(object.parameters[keys[i]]))
              throw $TypeError(".inference.ModelInferRequest.InferRequestedOutputTensor.parameters: object expected");
            message.parameters[keys[i]] = $root.inference.InferParameter.fromObject(object.parameters[keys[i]], _depth + 1);
          }
        }
        return message;
      };

      return InferRequestedOutputTensor;
    })();

    return ModelInferRequest;
  })();

  inference.ModelInferResponse = (function() {
    const ModelInferResponse = function (properties) {
      this.parameters = {};
      this.outputs = [];
      this.rawOutputContents = [];
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelInferResponse.prototype.modelName = "";

    ModelInferResponse.prototype.modelVersion = "";

    ModelInferResponse.prototype.id = "";

    ModelInferResponse.prototype.parameters = $util.emptyObject;

    ModelInferResponse.prototype.outputs = $util.emptyArray;

    ModelInferResponse.prototype.rawOutputContents = $util.emptyArray;

    ModelInferResponse.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.modelName != null && $Object.hasOwnProperty.call(message, "modelName") && message.modelName !== "")
        writer.uint32(/* id 1, wireType 2 =*/10).string(message.modelName);
      if (message.modelVersion != null && $Object.hasOwnProperty.call(message, "modelVersion") && message.modelVersion !== "")
        writer.uint32(/* id 2, wireType 2 =*/18).string(message.modelVersion);
      if (message.id != null && $Object.hasOwnProperty.call(message, "id") && message.id !== "")
        writer.uint32(/* id 3, wireType 2 =*/26).string(message.id);
      if (message.parameters != null && $Object.hasOwnProperty.call(message, "parameters"))
        for (let keys = $Object.keys(message.parameters), i = 0; i < keys.length; ++i) {
          writer.uint32(/* id 4, wireType 2 =*/34).fork().uint32(/* id 1, wireType 2 =*/10).string(keys[i]);
          $root.inference.InferParameter.encode(message.parameters[keys[i]], writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim().ldelim();
        }
      if (message.outputs != null && message.outputs.length)
        for (let i = 0; i < message.outputs.length; ++i)
          $root.inference.ModelInferResponse.InferOutputTensor.encode(message.outputs[i], writer.uint32(/* id 5, wireType 2 =*/42).fork(), _depth + 1).ldelim();
      if (message.rawOutputContents != null && message.rawOutputContents.length)
        for (let i = 0; i < message.rawOutputContents.length; ++i)
          writer.uint32(/* id 6, wireType 2 =*/50).bytes(message.rawOutputContents[i]);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelInferResponse.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, key, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelInferResponse();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.modelName = value;
            else
              delete message.modelName;
            continue;
          }
        case 2: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.modelVersion = value;
            else
              delete message.modelVersion;
            continue;
          }
        case 3: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.id = value;
            else
              delete message.id;
            continue;
          }
        case 4: {
            if (wireType !== 2)
              break;
            if (message.parameters === $util.emptyObject)
              message.parameters = {};
            let end2 = reader.size() + reader.pos;
            if (end2 > reader.len)
              throw $RangeError("index out of range");
            reader.len = end2;
            key = "";
            value = null;
            while (reader.pos < end2) {
              let tag2 = reader.tag();
              wireType = tag2 & 7;
              switch (tag2 >>>= 3) {
              case 1:
                if (wireType !== 2)
                  break;
                key = reader.stringVerify();
                continue;
              case 2:
                if (wireType !== 2)
                  break;
                value = $root.inference.InferParameter.decode(reader, reader.size(), $undefined, _depth + 1, value);
                continue;
              }
              reader.skipType(wireType, _depth, tag2);
            }
            if (reader.pos !== end2)
              throw $RangeError("index out of range");
            reader.len = end;
            if (key === "__proto__")
              $util.makeProp(message.parameters, key);
            message.parameters[key] = value || new $root.inference.InferParameter();
            continue;
          }
        case 5: {
            if (wireType !== 2)
              break;
            if (!(message.outputs && message.outputs.length))
              message.outputs = [];
            message.outputs.push($root.inference.ModelInferResponse.InferOutputTensor.decode(reader, reader.size(), $undefined, _depth + 1));
            continue;
          }
        case 6: {
            if (wireType !== 2)
              break;
            if (!(message.rawOutputContents && message.rawOutputContents.length))
              message.rawOutputContents = [];
            message.rawOutputContents.push(reader.bytes());
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelInferResponse.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelInferResponse)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelInferResponse: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelInferResponse();
      if (object.modelName != null)
        if (typeof object.modelName !== "string" || object.modelName.length)
          message.modelName = $String(object.modelName);
      if (object.modelVersion != null)
        if (typeof object.modelVersion !== "string" || object.modelVersion.length)
          message.modelVersion = $String(object.modelVersion);
      if (object.id != null)
        if (typeof object.id !== "string" || object.id.length)
          message.id = $String(object.id);
      if (object.parameters) {
        if (!$util.isObject(object.parameters))
          throw $TypeError(".inference.ModelInferResponse.parameters: object expected");
        message.parameters = {};
        for (let keys = $Object.keys(object.parameters), i = 0; i < keys.length; ++i) {
          if (keys[i] === "__proto__")
            $util.makeProp(message.parameters, keys[i]);
          if (!$util.isObject(object.parameters[keys[i]]))
            throw $TypeError(".inference.ModelInferResponse.parameters: object expected");
          message.parameters[keys[i]] = $root.inference.InferParameter.fromObject(object.parameters[keys[i]], _depth + 1);
        }
      }
      if (object.outputs) {
        if (!$Array.isArray(object.outputs))
          throw $TypeError(".inference.ModelInferResponse.outputs: array expected");
        message.outputs = $Array(object.outputs.length);
        for (let i = 0; i < object.outputs.length; ++i) {
          if (!$util.isObject(object.outputs[i]))
            throw $TypeError(".inference.ModelInferResponse.outputs: object expected");
          message.outputs[i] = $root.inference.ModelInferResponse.InferOutputTensor.fromObject(object.outputs[i], _depth + 1);
        }
      }
      if (object.rawOutputContents) {
        if (!$Array.isArray(object.rawOutputContents))
          throw $TypeError(".inference.ModelInferResponse.rawOutputContents: array expected");
        message.rawOutputContents = $Array(object.rawOutputContents.length);
        for (let i = 0; i < object.rawOutputContents.length; ++i)
          if (typeof object.rawOutputContents[i] === "string")
            $util.base64.decode(object.rawOutputContents[i], message.rawOutputContents[i] = $util.newBuffer($util.base64.length(object.rawOutputContents[i])), 0);
          else if (object.rawOutputContents[i].length >= 0)
            message.rawOutputContents[i] = object.rawOutputContents[i];
      }
      return message;
    };

    ModelInferResponse.InferOutputTensor = (function() {
      const InferOutputTensor = function (properties) {
        this.shape = [];
        this.parameters = {};
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      InferOutputTensor.prototype.name = "";

      InferOutputTensor.prototype.datatype = "";

      InferOutputTensor.prototype.shape = $util.emptyArray;

      InferOutputTensor.prototype.parameters = $util.emptyObject;

      InferOutputTensor.prototype.contents = null;

      InferOutputTensor.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
          writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
        if (message.datatype != null && $Object.hasOwnProperty.call(message, "datatype") && message.datatype !== "")
          writer.uint32(/* id 2, wireType 2 =*/18).string(message.datatype);
        if (message.shape != null && message.shape.length)
          writer.uint32(/* id 3, wireType 2 =*/26).int64s(message.shape);
        if (message.parameters != null && $Object.hasOwnProperty.call(message, "parameters"))
          for (let keys = $Object.keys(message.parameters), i = 0; i < keys.length; ++i) {
            writer.uint32(/* id 4, wireType 2 =*/34).fork().uint32(/* id 1, wireType 2 =*/10).string(keys[i]);
            $root.inference.InferParameter.encode(message.parameters[keys[i]], writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim().ldelim();
          }
        if (message.contents != null && $Object.hasOwnProperty.call(message, "contents"))
          $root.inference.InferTensorContents.encode(message.contents, writer.uint32(/* id 5, wireType 2 =*/42).fork(), _depth + 1).ldelim();
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      InferOutputTensor.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message, key, value;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.ModelInferResponse.InferOutputTensor();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 2)
                break;
              if ((value = reader.stringVerify()).length)
                message.name = value;
              else
                delete message.name;
              continue;
            }
          case 2: {
              if (wireType !== 2)
                break;
              if ((value = reader.stringVerify()).length)
                message.datatype = value;
              else
                delete message.datatype;
              continue;
            }
          case 3: {
              if (wireType === 2) {
                if (!(message.shape && message.shape.length))
                  message.shape = [];
                reader.int64s(message.shape);
                continue;
              }
              if (wireType !== 0)
                break;
              if (!(message.shape && message.shape.length))
                message.shape = [];
              message.shape.push(reader.int64());
              continue;
            }
          case 4: {
              if (wireType !== 2)
                break;
              if (message.parameters === $util.emptyObject)
                message.parameters = {};
              let end2 = reader.size() + reader.pos;
              if (end2 > reader.len)
                throw $RangeError("index out of range");
              reader.len = end2;
              key = "";
              value = null;
              while (reader.pos < end2) {
                let tag2 = reader.tag();
                wireType = tag2 & 7;
                switch (tag2 >>>= 3) {
                case 1:
                  if (wireType !== 2)
                    break;
                  key = reader.stringVerify();
                  continue;
                case 2:
                  if (wireType !== 2)
                    break;
                  value = $root.inference.InferParameter.decode(reader, reader.size(), $undefined, _depth + 1, value);
                  continue;
                }
                reader.skipType(wireType, _depth, tag2);
              }
              if (reader.pos !== end2)
                throw $RangeError("index out of range");
              reader.len = end;
              if (key === "__proto__")
                $util.makeProp(message.parameters, key);
              message.parameters[key] = value || new $root.inference.InferParameter();
              continue;
            }
          case 5: {
              if (wireType !== 2)
                break;
              message.contents = $root.inference.InferTensorContents.decode(reader, reader.size(), $undefined, _depth + 1, message.contents);
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      InferOutputTensor.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.ModelInferResponse.InferOutputTensor)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.ModelInferResponse.InferOutputTensor: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.ModelInferResponse.InferOutputTensor();
        if (object.name != null)
          if (typeof object.name !== "string" || object.name.length)
            message.name = $String(object.name);
        if (object.datatype != null)
          if (typeof object.datatype !== "string" || object.datatype.length)
            message.datatype = $String(object.datatype);
        if (object.shape) {
          if (!$Array.isArray(object.shape))
            throw $TypeError(".inference.ModelInferResponse.InferOutputTensor.shape: array expected");
          message.shape = $Array(object.shape.length);
          for (let i = 0; i < object.shape.length; ++i)
            if ($util.Long)
              message.shape[i] = $util.Long.fromValue(object.shape[i], false);
            else if (typeof object.shape[i] === "string")
              message.shape[i] = $parseInt(object.shape[i], 10);
            else if (typeof object.shape[i] === "number")
              message.shape[i] = object.shape[i];
            else if (typeof object.shape[i] === "object")
              message.shape[i] = new $util.LongBits(object.shape[i].low >>> 0, object.shape[i].high >>> 0).toNumber();
        }
        if (object.parameters) {
          if (!$util.isObject(object.parameters))
            throw $TypeError(".inference.ModelInferResponse.InferOutputTensor.parameters: object expected");
          message.parameters = {};
          for (let keys = $Object.keys(object.parameters), i = 0; i < keys.length; ++i) {
            if (keys[i] === "__proto__")
              $util.makeProp(message.parameters, keys[i]);
            if (!$util.isObject(object.parameters[keys[i]]))
              throw $TypeError(".inference.ModelInferResponse.InferOutputTensor.parameters: object expected");
            message.parameters[keys[i]] = $root.inference.InferParameter.fromObject(object.parameters[keys[i]], _depth + 1);
          }
        }
        if (object.contents != null) {
          if (!$util.isObject(object.contents))
            throw $TypeError(".inference.ModelInferResponse.InferOutputTensor.contents: object expected");
          message.contents = $root.inference.InferTensorContents.fromObject(object.contents, _depth + 1);
        }
        return message;
      };

      return InferOutputTensor;
    })();

    return ModelInferResponse;
  })();

  inference.ModelStreamInferResponse = (function() {
    const ModelStreamInferResponse = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelStreamInferResponse.prototype.errorMessage = "";

    ModelStreamInferResponse.prototype.inferResponse = null;

    ModelStreamInferResponse.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.errorMessage != null && $Object.hasOwnProperty.call(message, "errorMessage") && message.errorMessage !== "")
        writer.uint32(/* id 1, wireType 2 =*/10).string(message.errorMessage);
      if (message.inferResponse != null && $Object.hasOwnProperty.call(message, "inferResponse"))
        $root.inference.ModelInferResponse.encode(message.inferResponse, writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim();
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelStreamInferResponse.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelStreamInferResponse();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.errorMessage = value;
            else
              delete message.errorMessage;
            continue;
          }
        case 2: {
            if (wireType !== 2)
              break;
            message.inferResponse = $root.inference.ModelInferResponse.decode(reader, reader.size(), $undefined, _depth + 1, message.inferResponse);
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelStreamInferResponse.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelStreamInferResponse)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelStreamInferResponse: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelStreamInferResponse();
      if (object.errorMessage != null)
        if (typeof object.errorMessage !== "string" || object.errorMessage.length)
          message.errorMessage = $String(object.errorMessage);
      if (object.inferResponse != null) {
        if (!$util.isObject(object.inferResponse))
          throw $TypeError(".inference.ModelStreamInferResponse.inferResponse: object expected");
        message.inferResponse = $root.inference.ModelInferResponse.fromObject(object.inferResponse, _depth + 1);
      }
      return message;
    };

    return ModelStreamInferResponse;
  })();

  inference.ModelConfigRequest = (function() {
    const ModelConfigRequest = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelConfigRequest.prototype.name = "";

    ModelConfigRequest.prototype.version = "";

    ModelConfigRequest.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
        writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
      if (message.version != null && $Object.hasOwnProperty.call(message, "version") && message.version !== "")
        writer.uint32(/* id 2, wireType 2 =*/18).string(message.version);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelConfigRequest.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelConfigRequest();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.name = value;
            else
              delete message.name;
            continue;
          }
        case 2: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.version = value;
            else
              delete message.version;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelConfigRequest.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelConfigRequest)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelConfigRequest: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelConfigRequest();
      if (object.name != null)
        if (typeof object.name !== "string" || object.name.length)
          message.name = $String(object.name);
      if (object.version != null)
        if (typeof object.version !== "string" || object.version.length)
          message.version = $String(object.version);
      return message;
    };

    return ModelConfigRequest;
  })();

  inference.ModelConfigResponse = (function() {
    const ModelConfigResponse = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelConfigResponse.prototype.config = null;

    ModelConfigResponse.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.config != null && $Object.hasOwnProperty.call(message, "config"))
        $root.inference.ModelConfig.encode(message.config, writer.uint32(/* id 1, wireType 2 =*/10).fork(), _depth + 1).ldelim();
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelConfigResponse.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelConfigResponse();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            message.config = $root.inference.ModelConfig.decode(reader, reader.size(), $undefined, _depth + 1, message.config);
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelConfigResponse.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelConfigResponse)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelConfigResponse: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelConfigResponse();
      if (object.config != null) {
        if (!$util.isObject(object.config))
          throw $TypeError(".inference.ModelConfigResponse.config: object expected");
        message.config = $root.inference.ModelConfig.fromObject(object.config, _depth + 1);
      }
      return message;
    };

    return ModelConfigResponse;
  })();

  inference.ModelStatisticsRequest = (function() {
    const ModelStatisticsRequest = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelStatisticsRequest.prototype.name = "";

    ModelStatisticsRequest.prototype.version = "";

    ModelStatisticsRequest.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
        writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
      if (message.version != null && $Object.hasOwnProperty.call(message, "version") && message.version !== "")
        writer.uint32(/* id 2, wireType 2 =*/18).string(message.version);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelStatisticsRequest.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelStatisticsRequest();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.name = value;
            else
              delete message.name;
            continue;
          }
        case 2: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.version = value;
            else
              delete message.version;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelStatisticsRequest.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelStatisticsRequest)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelStatisticsRequest: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelStatisticsRequest();
      if (object.name != null)
        if (typeof object.name !== "string" || object.name.length)
          message.name = $String(object.name);
      if (object.version != null)
        if (typeof object.version !== "string" || object.version.length)
          message.version = $String(object.version);
      return message;
    };

    return ModelStatisticsRequest;
  })();

  inference.StatisticDuration = (function() {
    const StatisticDuration = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    StatisticDuration.prototype.count = 0;

    StatisticDuration.prototype.ns = 0;

    StatisticDuration.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.count != null && $Object.hasOwnProperty.call(message, "count") && (typeof message.count === "object" ? message.count.low || message.count.high : message.count !== 0))
        writer.uint32(/* id 1, wireType 0 =*/8).uint64(message.count);
      if (message.ns != null && $Object.hasOwnProperty.call(message, "ns") && (typeof message.ns === "object" ? message.ns.low || message.ns.high : message.ns !== 0))
        writer.uint32(/* id 2, wireType 0 =*/16).uint64(message.ns);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    StatisticDuration.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.StatisticDuration();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 0)
              break;
            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
              message.count = value;
            else
              delete message.count;
            continue;
          }
        case 2: {
            if (wireType !== 0)
              break;
            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
              message.ns = value;
            else
              delete message.ns;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    StatisticDuration.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.StatisticDuration)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.StatisticDuration: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.StatisticDuration();
      if (object.count != null)
        if (typeof object.count === "object" ? object.count.low || object.count.high : $Number(object.count) !== 0)
          if ($util.Long)
            message.count = $util.Long.fromValue(object.count, true);
          else if (typeof object.count === "string")
            message.count = $parseInt(object.count, 10);
          else if (typeof object.count === "number")
            message.count = object.count;
          else if (typeof object.count === "object")
            message.count = new $util.LongBits(object.count.low >>> 0, object.count.high >>> 0).toNumber(true);
      if (object.ns != null)
        if (typeof object.ns === "object" ? object.ns.low || object.ns.high : $Number(object.ns) !== 0)
          if ($util.Long)
            message.ns = $util.Long.fromValue(object.ns, true);
          else if (typeof object.ns === "string")
            message.ns = $parseInt(object.ns, 10);
          else if (typeof object.ns === "number")
            message.ns = object.ns;
          else if (typeof object.ns === "object")
            message.ns = new $util.LongBits(object.ns.low >>> 0, object.ns.high >>> 0).toNumber(true);
      return message;
    };

    return StatisticDuration;
  })();

  inference.InferStatistics = (function() {
    const InferStatistics = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    InferStatistics.prototype.success = null;

    InferStatistics.prototype.fail = null;

    InferStatistics.prototype.queue = null;

    InferStatistics.prototype.computeInput = null;

    InferStatistics.prototype.computeInfer = null;

    InferStatistics.prototype.computeOutput = null;

    InferStatistics.prototype.cacheHit = null;

    InferStatistics.prototype.cacheMiss = null;

    InferStatistics.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.success != null && $Object.hasOwnProperty.call(message, "success"))
        $root.inference.StatisticDuration.encode(message.success, writer.uint32(/* id 1, wireType 2 =*/10).fork(), _depth + 1).ldelim();
      if (message.fail != null && $Object.hasOwnProperty.call(message, "fail"))
        $root.inference.StatisticDuration.encode(message.fail, writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim();
      if (message.queue != null && $Object.hasOwnProperty.call(message, "queue"))
        $root.inference.StatisticDuration.encode(message.queue, writer.uint32(/* id 3, wireType 2 =*/26).fork(), _depth + 1).ldelim();
      if (message.computeInput != null && $Object.hasOwnProperty.call(message, "computeInput"))
        $root.inference.StatisticDuration.encode(message.computeInput, writer.uint32(/* id 4, wireType 2 =*/34).fork(), _depth + 1).ldelim();
      if (message.computeInfer != null && $Object.hasOwnProperty.call(message, "computeInfer"))
        $root.inference.StatisticDuration.encode(message.computeInfer, writer.uint32(/* id 5, wireType 2 =*/42).fork(), _depth + 1).ldelim();
      if (message.computeOutput != null && $Object.hasOwnProperty.call(message, "computeOutput"))
        $root.inference.StatisticDuration.encode(message.computeOutput, writer.uint32(/* id 6, wireType 2 =*/50).fork(), _depth + 1).ldelim();
      if (message.cacheHit != null && $Object.hasOwnProperty.call(message, "cacheHit"))
        $root.inference.StatisticDuration.encode(message.cacheHit, writer.uint32(/* id 7, wireType 2 =*/58).fork(), _depth + 1).ldelim();
      if (message.cacheMiss != null && $Object.hasOwnProperty.call(message, "cacheMiss"))
        $root.inference.StatisticDuration.encode(message.cacheMiss, writer.uint32(/* id 8, wireType 2 =*/66).fork(), _depth + 1).ldelim();
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    InferStatistics.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.InferStatistics();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            message.success = $root.inference.StatisticDuration.decode(reader, reader.size(), $undefined, _depth + 1, message.success);
            continue;
          }
        case 2: {
            if (wireType !== 2)
              break;
            message.fail = $root.inference.StatisticDuration.decode(reader, reader.size(), $undefined, _depth + 1, message.fail);
            continue;
          }
        case 3: {
            if (wireType !== 2)
              break;
            message.queue = $root.inference.StatisticDuration.decode(reader, reader.size(), $undefined, _depth + 1, message.queue);
            continue;
          }
        case 4: {
            if (wireType !== 2)
              break;
            message.computeInput = $root.inference.StatisticDuration.decode(reader, reader.size(), $undefined, _depth + 1, message.computeInput);
            continue;
          }
        case 5: {
            if (wireType !== 2)
              break;
            message.computeInfer = $root.inference.StatisticDuration.decode(reader, reader.size(), $undefined, _depth + 1, message.computeInfer);
            continue;
          }
        case 6: {
            if (wireType !== 2)
              break;
            message.computeOutput = $root.inference.StatisticDuration.decode(reader, reader.size(), $undefined, _depth + 1, message.computeOutput);
            continue;
          }
        case 7: {
            if (wireType !== 2)
              break;
            message.cacheHit = $root.inference.StatisticDuration.decode(reader, reader.size(), $undefined, _depth + 1, message.cacheHit);
            continue;
          }
        case 8: {
            if (wireType !== 2)
              break;
            message.cacheMiss = $root.inference.StatisticDuration.decode(reader, reader.size(), $undefined, _depth + 1, message.cacheMiss);
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    InferStatistics.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.InferStatistics)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.InferStatistics: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.InferStatistics();
      if (object.success != null) {
        if (!$util.isObject(object.success))
          throw $TypeError(".inference.InferStatistics.success: object expected");
        message.success = $root.inference.StatisticDuration.fromObject(object.success, _depth + 1);
      }
      if (object.fail != null) {
        if (!$util.isObject(object.fail))
          throw $TypeError(".inference.InferStatistics.fail: object expected");
        message.fail = $root.inference.StatisticDuration.fromObject(object.fail, _depth + 1);
      }
      if (object.queue != null) {
        if (!$util.isObject(object.queue))
          throw $TypeError(".inference.InferStatistics.queue: object expected");
        message.queue = $root.inference.StatisticDuration.fromObject(object.queue, _depth + 1);
      }
      if (object.computeInput != null) {
        if (!$util.isObject(object.computeInput))
          throw $TypeError(".inference.InferStatistics.computeInput: object expected");
        message.computeInput = $root.inference.StatisticDuration.fromObject(object.computeInput, _depth + 1);
      }
      if (object.computeInfer != null) {
        if (!$util.isObject(object.computeInfer))
          throw $TypeError(".inference.InferStatistics.computeInfer: object expected");
        message.computeInfer = $root.inference.StatisticDuration.fromObject(object.computeInfer, _depth + 1);
      }
      if (object.computeOutput != null) {
        if (!$util.isObject(object.computeOutput))
          throw $TypeError(".inference.InferStatistics.computeOutput: object expected");
        message.computeOutput = $root.inference.StatisticDuration.fromObject(object.computeOutput, _depth + 1);
      }
      if (object.cacheHit != null) {
        if (!$util.isObject(object.cacheHit))
          throw $TypeError(".inference.InferStatistics.cacheHit: object expected");
        message.cacheHit = $root.inference.StatisticDuration.fromObject(object.cacheHit, _depth + 1);
      }
      if (object.cacheMiss != null) {
        if (!$util.isObject(object.cacheMiss))
          throw $TypeError(".inference.InferStatistics.cacheMiss: object expected");
        message.cacheMiss = $root.inference.StatisticDuration.fromObject(object.cacheMiss, _depth + 1);
      }
      return message;
    };

    return InferStatistics;
  })();

  inference.InferResponseStatistics = (function() {
    const InferResponseStatistics = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    InferResponseStatistics.prototype.computeInfer = null;

    InferResponseStatistics.prototype.computeOutput = null;

    InferResponseStatistics.prototype.success = null;

    InferResponseStatistics.prototype.fail = null;

    InferResponseStatistics.prototype.emptyResponse = null;

    InferResponseStatistics.prototype.cancel = null;

    InferResponseStatistics.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.computeInfer != null && $Object.hasOwnProperty.call(message, "computeInfer"))
        $root.inference.StatisticDuration.encode(message.computeInfer, writer.uint32(/* id 1, wireType 2 =*/10).fork(), _depth + 1).ldelim();
      if (message.computeOutput != null && $Object.hasOwnProperty.call(message, "computeOutput"))
        $root.inference.StatisticDuration.encode(message.computeOutput, writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim();
      if (message.success != null && $Object.hasOwnProperty.call(message, "success"))
        $root.inference.StatisticDuration.encode(message.success, writer.uint32(/* id 3, wireType 2 =*/26).fork(), _depth + 1).ldelim();
      if (message.fail != null && $Object.hasOwnProperty.call(message, "fail"))
        $root.inference.StatisticDuration.encode(message.fail, writer.uint32(/* id 4, wireType 2 =*/34).fork(), _depth + 1).ldelim();
      if (message.emptyResponse != null && $Object.hasOwnProperty.call(message, "emptyResponse"))
        $root.inference.StatisticDuration.encode(message.emptyResponse, writer.uint32(/* id 5, wireType 2 =*/42).fork(), _depth + 1).ldelim();
      if (message.cancel != null && $Object.hasOwnProperty.call(message, "cancel"))
        $root.inference.StatisticDuration.encode(message.cancel, writer.uint32(/* id 6, wireType 2 =*/50).fork(), _depth + 1).ldelim();
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    InferResponseStatistics.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.InferResponseStatistics();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            message.computeInfer = $root.inference.StatisticDuration.decode(reader, reader.size(), $undefined, _depth + 1, message.computeInfer);
            continue;
          }
        case 2: {
            if (wireType !== 2)
              break;
            message.computeOutput = $root.inference.StatisticDuration.decode(reader, reader.size(), $undefined, _depth + 1, message.computeOutput);
            continue;
          }
        case 3: {
            if (wireType !== 2)
              break;
            message.success = $root.inference.StatisticDuration.decode(reader, reader.size(), $undefined, _depth + 1, message.success);
            continue;
          }
        case 4: {
            if (wireType !== 2)
              break;
            message.fail = $root.inference.StatisticDuration.decode(reader, reader.size(), $undefined, _depth + 1, message.fail);
            continue;
          }
        case 5: {
            if (wireType !== 2)
              break;
            message.emptyResponse = $root.inference.StatisticDuration.decode(reader, reader.size(), $undefined, _depth + 1, message.emptyResponse);
            continue;
          }
        case 6: {
            if (wireType !== 2)
              break;
            message.cancel = $root.inference.StatisticDuration.decode(reader, reader.size(), $undefined, _depth + 1, message.cancel);
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    InferResponseStatistics.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.InferResponseStatistics)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.InferResponseStatistics: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.InferResponseStatistics();
      if (object.computeInfer != null) {
        if (!$util.isObject(object.computeInfer))
          throw $TypeError(".inference.InferResponseStatistics.computeInfer: object expected");
        message.computeInfer = $root.inference.StatisticDuration.fromObject(object.computeInfer, _depth + 1);
      }
      if (object.computeOutput != null) {
        if (!$util.isObject(object.computeOutput))
          throw $TypeError(".inference.InferResponseStatistics.computeOutput: object expected");
        message.computeOutput = $root.inference.StatisticDuration.fromObject(object.computeOutput, _depth + 1);
      }
      if (object.success != null) {
        if (!$util.isObject(object.success))
          throw $TypeError(".inference.InferResponseStatistics.success: object expected");
        message.success = $root.inference.StatisticDuration.fromObject(object.success, _depth + 1);
      }
      if (object.fail != null) {
        if (!$util.isObject(object.fail))
          throw $TypeError(".inference.InferResponseStatistics.fail: object expected");
        message.fail = $root.inference.StatisticDuration.fromObject(object.fail, _depth + 1);
      }
      if (object.emptyResponse != null) {
        if (!$util.isObject(object.emptyResponse))
          throw $TypeError(".inference.InferResponseStatistics.emptyResponse: object expected");
        message.emptyResponse = $root.inference.StatisticDuration.fromObject(object.emptyResponse, _depth + 1);
      }
      if (object.cancel != null) {
        if (!$util.isObject(object.cancel))
          throw $TypeError(".inference.InferResponseStatistics.cancel: object expected");
        message.cancel = $root.inference.StatisticDuration.fromObject(object.cancel, _depth + 1);
      }
      return message;
    };

    return InferResponseStatistics;
  })();

  inference.InferBatchStatistics = (function() {
    const InferBatchStatistics = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    InferBatchStatistics.prototype.batchSize = 0;

    InferBatchStatistics.prototype.computeInput = null;

    InferBatchStatistics.prototype.computeInfer = null;

    InferBatchStatistics.prototype.computeOutput = null;

    InferBatchStatistics.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.batchSize != null && $Object.hasOwnProperty.call(message, "batchSize") && (typeof message.batchSize === "object" ? message.batchSize.low || message.batchSize.high : message.batchSize !== 0))
        writer.uint32(/* id 1, wireType 0 =*/8).uint64(message.batchSize);
      if (message.computeInput != null && $Object.hasOwnProperty.call(message, "computeInput"))
        $root.inference.StatisticDuration.encode(message.computeInput, writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim();
      if (message.computeInfer != null && $Object.hasOwnProperty.call(message, "computeInfer"))
        $root.inference.StatisticDuration.encode(message.computeInfer, writer.uint32(/* id 3, wireType 2 =*/26).fork(), _depth + 1).ldelim();
      if (message.computeOutput != null && $Object.hasOwnProperty.call(message, "computeOutput"))
        $root.inference.StatisticDuration.encode(message.computeOutput, writer.uint32(/* id 4, wireType 2 =*/34).fork(), _depth + 1).ldelim();
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    InferBatchStatistics.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.InferBatchStatistics();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 0)
              break;
            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
              message.batchSize = value;
            else
              delete message.batchSize;
            continue;
          }
        case 2: {
            if (wireType !== 2)
              break;
            message.computeInput = $root.inference.StatisticDuration.decode(reader, reader.size(), $undefined, _depth + 1, message.computeInput);
            continue;
          }
        case 3: {
            if (wireType !== 2)
              break;
            message.computeInfer = $root.inference.StatisticDuration.decode(reader, reader.size(), $undefined, _depth + 1, message.computeInfer);
            continue;
          }
        case 4: {
            if (wireType !== 2)
              break;
            message.computeOutput = $root.inference.StatisticDuration.decode(reader, reader.size(), $undefined, _depth + 1, message.computeOutput);
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    InferBatchStatistics.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.InferBatchStatistics)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.InferBatchStatistics: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.InferBatchStatistics();
      if (object.batchSize != null)
        if (typeof object.batchSize === "object" ? object.batchSize.low || object.batchSize.high : $Number(object.batchSize) !== 0)
          if ($util.Long)
            message.batchSize = $util.Long.fromValue(object.batchSize, true);
          else if (typeof object.batchSize === "string")
            message.batchSize = $parseInt(object.batchSize, 10);
          else if (typeof object.batchSize === "number")
            message.batchSize = object.batchSize;
          else if (typeof object.batchSize === "object")
            message.batchSize = new $util.LongBits(object.batchSize.low >>> 0, object.batchSize.high >>> 0).toNumber(true);
      if (object.computeInput != null) {
        if (!$util.isObject(object.computeInput))
          throw $TypeError(".inference.InferBatchStatistics.computeInput: object expected");
        message.computeInput = $root.inference.StatisticDuration.fromObject(object.computeInput, _depth + 1);
      }
      if (object.computeInfer != null) {
        if (!$util.isObject(object.computeInfer))
          throw $TypeError(".inference.InferBatchStatistics.computeInfer: object expected");
        message.computeInfer = $root.inference.StatisticDuration.fromObject(object.computeInfer, _depth + 1);
      }
      if (object.computeOutput != null) {
        if (!$util.isObject(object.computeOutput))
          throw $TypeError(".inference.InferBatchStatistics.computeOutput: object expected");
        message.computeOutput = $root.inference.StatisticDuration.fromObject(object.computeOutput, _depth + 1);
      }
      return message;
    };

    return InferBatchStatistics;
  })();

  inference.MemoryUsage = (function() {
    const MemoryUsage = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    MemoryUsage.prototype.type = "";

    MemoryUsage.prototype.id = 0;

    MemoryUsage.prototype.byteSize = 0;

    MemoryUsage.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.type != null && $Object.hasOwnProperty.call(message, "type") && message.type !== "")
        writer.uint32(/* id 1, wireType 2 =*/10).string(message.type);
      if (message.id != null && $Object.hasOwnProperty.call(message, "id") && (typeof message.id === "object" ? message.id.low || message.id.high : message.id !== 0))
        writer.uint32(/* id 2, wireType 0 =*/16).int64(message.id);
      if (message.byteSize != null && $Object.hasOwnProperty.call(message, "byteSize") && (typeof message.byteSize === "object" ? message.byteSize.low || message.byteSize.high : message.byteSize !== 0))
        writer.uint32(/* id 3, wireType 0 =*/24).uint64(message.byteSize);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    MemoryUsage.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.MemoryUsage();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.type = value;
            else
              delete message.type;
            continue;
          }
        case 2: {
            if (wireType !== 0)
              break;
            if (typeof (value = reader.int64()) === "object" ? value.low || value.high : value !== 0)
              message.id = value;
            else
              delete message.id;
            continue;
          }
        case 3: {
            if (wireType !== 0)
              break;
            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
              message.byteSize = value;
            else
              delete message.byteSize;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    MemoryUsage.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.MemoryUsage)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.MemoryUsage: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.MemoryUsage();
      if (object.type != null)
        if (typeof object.type !== "string" || object.type.length)
          message.type = $String(object.type);
      if (object.id != null)
        if (typeof object.id === "object" ? object.id.low || object.id.high : $Number(object.id) !== 0)
          if ($util.Long)
            message.id = $util.Long.fromValue(object.id, false);
          else if (typeof object.id === "string")
            message.id = $parseInt(object.id, 10);
          else if (typeof object.id === "number")
            message.id = object.id;
          else if (typeof object.id === "object")
            message.id = new $util.LongBits(object.id.low >>> 0, object.id.high >>> 0).toNumber();
      if (object.byteSize != null)
        if (typeof object.byteSize === "object" ? object.byteSize.low || object.byteSize.high : $Number(object.byteSize) !== 0)
          if ($util.Long)
            message.byteSize = $util.Long.fromValue(object.byteSize, true);
          else if (typeof object.byteSize === "string")
            message.byteSize = $parseInt(object.byteSize, 10);
          else if (typeof object.byteSize === "number")
            message.byteSize = object.byteSize;
          else if (typeof object.byteSize === "object")
            message.byteSize = new $util.LongBits(object.byteSize.low >>> 0, object.byteSize.high >>> 0).toNumber(true);
      return message;
    };

    return MemoryUsage;
  })();

  inference.ModelStatistics = (function() {
    const ModelStatistics = function (properties) {
      this.batchStats = [];
      this.memoryUsage = [];
      this.responseStats = {};
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelStatistics.prototype.name = "";

    ModelStatistics.prototype.version = "";

    ModelStatistics.prototype.lastInference = 0;

    ModelStatistics.prototype.inferenceCount = 0;

    ModelStatistics.prototype.executionCount = 0;

    ModelStatistics.prototype.inferenceStats = null;

    ModelStatistics.prototype.batchStats = $util.emptyArray;

    ModelStatistics.prototype.memoryUsage = $util.emptyArray;

    ModelStatistics.prototype.responseStats = $util.emptyObject;

    ModelStatistics.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
        writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
      if (message.version != null && $Object.hasOwnProperty.call(message, "version") && message.version !== "")
        writer.uint32(/* id 2, wireType 2 =*/18).string(message.version);
      if (message.lastInference != null && $Object.hasOwnProperty.call(message, "lastInference") && (typeof message.lastInference === "object" ? message.lastInference.low || message.lastInference.high : message.lastInference !== 0))
        writer.uint32(/* id 3, wireType 0 =*/24).uint64(message.lastInference);
      if (message.inferenceCount != null && $Object.hasOwnProperty.call(message, "inferenceCount") && (typeof message.inferenceCount === "object" ? message.inferenceCount.low || message.inferenceCount.high : message.inferenceCount !== 0))
        writer.uint32(/* id 4, wireType 0 =*/32).uint64(message.inferenceCount);
      if (message.executionCount != null && $Object.hasOwnProperty.call(message, "executionCount") && (typeof message.executionCount === "object" ? message.executionCount.low || message.executionCount.high : message.executionCount !== 0))
        writer.uint32(/* id 5, wireType 0 =*/40).uint64(message.executionCount);
      if (message.inferenceStats != null && $Object.hasOwnProperty.call(message, "inferenceStats"))
        $root.inference.InferStatistics.encode(message.inferenceStats, writer.uint32(/* id 6, wireType 2 =*/50).fork(), _depth + 1).ldelim();
      if (message.batchStats != null && message.batchStats.length)
        for (let i = 0; i < message.batchStats.length; ++i)
          $root.inference.InferBatchStatistics.encode(message.batchStats[i], writer.uint32(/* id 7, wireType 2 =*/58).fork(), _depth + 1).ldelim();
      if (message.memoryUsage != null && message.memoryUsage.length)
        for (let i = 0; i < message.memoryUsage.length; ++i)
          $root.inference.MemoryUsage.encode(message.memoryUsage[i], writer.uint32(/* id 8, wireType 2 =*/66).fork(), _depth + 1).ldelim();
      if (message.responseStats != null && $Object.hasOwnProperty.call(message, "responseStats"))
        for (let keys = $Object.keys(message.responseStats), i = 0; i < keys.length; ++i) {
          writer.uint32(/* id 9, wireType 2 =*/74).fork().uint32(/* id 1, wireType 2 =*/10).string(keys[i]);
          $root.inference.InferResponseStatistics.encode(message.responseStats[keys[i]], writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim().ldelim();
        }
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelStatistics.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, key, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelStatistics();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.name = value;
            else
              delete message.name;
            continue;
          }
        case 2: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.version = value;
            else
              delete message.version;
            continue;
          }
        case 3: {
            if (wireType !== 0)
              break;
            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
              message.lastInference = value;
            else
              delete message.lastInference;
            continue;
          }
        case 4: {
            if (wireType !== 0)
              break;
            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
              message.inferenceCount = value;
            else
              delete message.inferenceCount;
            continue;
          }
        case 5: {
            if (wireType !== 0)
              break;
            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
              message.executionCount = value;
            else
              delete message.executionCount;
            continue;
          }
        case 6: {
            if (wireType !== 2)
              break;
            message.inferenceStats = $root.inference.InferStatistics.decode(reader, reader.size(), $undefined, _depth + 1, message.inferenceStats);
            continue;
          }
        case 7: {
            if (wireType !== 2)
              break;
            if (!(message.batchStats && message.batchStats.length))
              message.batchStats = [];
            message.batchStats.push($root.inference.InferBatchStatistics.decode(reader, reader.size(), $undefined, _depth + 1));
            continue;
          }
        case 8: {
            if (wireType !== 2)
              break;
            if (!(message.memoryUsage && message.memoryUsage.length))
              message.memoryUsage = [];
            message.memoryUsage.push($root.inference.MemoryUsage.decode(reader, reader.size(), $undefined, _depth + 1));
            continue;
          }
        case 9: {
            if (wireType !== 2)
              break;
            if (message.responseStats === $util.emptyObject)
              message.responseStats = {};
            let end2 = reader.size() + reader.pos;
            if (end2 > reader.len)
              throw $RangeError("index out of range");
            reader.len = end2;
            key = "";
            value = null;
            while (reader.pos < end2) {
              let tag2 = reader.tag();
              wireType = tag2 & 7;
              switch (tag2 >>>= 3) {
              case 1:
                if (wireType !== 2)
                  break;
                key = reader.stringVerify();
                continue;
              case 2:
                if (wireType !== 2)
                  break;
                value = $root.inference.InferResponseStatistics.decode(reader, reader.size(), $undefined, _depth + 1, value);
                continue;
              }
              reader.skipType(wireType, _depth, tag2);
            }
            if (reader.pos !== end2)
              throw $RangeError("index out of range");
            reader.len = end;
            if (key === "__proto__")
              $util.makeProp(message.responseStats, key);
            message.responseStats[key] = value || new $root.inference.InferResponseStatistics();
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelStatistics.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelStatistics)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelStatistics: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelStatistics();
      if (object.name != null)
        if (typeof object.name !== "string" || object.name.length)
          message.name = $String(object.name);
      if (object.version != null)
        if (typeof object.version !== "string" || object.version.length)
          message.version = $String(object.version);
      if (object.lastInference != null)
        if (typeof object.lastInference === "object" ? object.lastInference.low || object.lastInference.high : $Number(object.lastInference) !== 0)
          if ($util.Long)
            message.lastInference = $util.Long.fromValue(object.lastInference, true);
          else if (typeof object.lastInference === "string")
            message.lastInference = $parseInt(object.lastInference, 10);
          else if (typeof object.lastInference === "number")
            message.lastInference = object.lastInference;
          else if (typeof object.lastInference === "object")
            message.lastInference = new $util.LongBits(object.lastInference.low >>> 0, object.lastInference.high >>> 0).toNumber(true);
      if (object.inferenceCount != null)
        if (typeof object.inferenceCount === "object" ? object.inferenceCount.low || object.inferenceCount.high : $Number(object.inferenceCount) !== 0)
          if ($util.Long)
            message.inferenceCount = $util.Long.fromValue(object.inferenceCount, true);
          else if (typeof object.inferenceCount === "string")
            message.inferenceCount = $parseInt(object.inferenceCount, 10);
          else if (typeof object.inferenceCount === "number")
            message.inferenceCount = object.inferenceCount;
          else if (typeof object.inferenceCount === "object")
            message.inferenceCount = new $util.LongBits(object.inferenceCount.low >>> 0, object.inferenceCount.high >>> 0).toNumber(true);
      if (object.executionCount != null)
        if (typeof object.executionCount === "object" ? object.executionCount.low || object.executionCount.high : $Number(object.executionCount) !== 0)
          if ($util.Long)
            message.executionCount = $util.Long.fromValue(object.executionCount, true);
          else if (typeof object.executionCount === "string")
            message.executionCount = $parseInt(object.executionCount, 10);
          else if (typeof object.executionCount === "number")
            message.executionCount = object.executionCount;
          else if (typeof object.executionCount === "object")
            message.executionCount = new $util.LongBits(object.executionCount.low >>> 0, object.executionCount.high >>> 0).toNumber(true);
      if (object.inferenceStats != null) {
        if (!$util.isObject(object.inferenceStats))
          throw $TypeError(".inference.ModelStatistics.inferenceStats: object expected");
        message.inferenceStats = $root.inference.InferStatistics.fromObject(object.inferenceStats, _depth + 1);
      }
      if (object.batchStats) {
        if (!$Array.isArray(object.batchStats))
          throw $TypeError(".inference.ModelStatistics.batchStats: array expected");
        message.batchStats = $Array(object.batchStats.length);
        for (let i = 0; i < object.batchStats.length; ++i) {
          if (!$util.isObject(object.batchStats[i]))
            throw $TypeError(".inference.ModelStatistics.batchStats: object expected");
          message.batchStats[i] = $root.inference.InferBatchStatistics.fromObject(object.batchStats[i], _depth + 1);
        }
      }
      if (object.memoryUsage) {
        if (!$Array.isArray(object.memoryUsage))
          throw $TypeError(".inference.ModelStatistics.memoryUsage: array expected");
        message.memoryUsage = $Array(object.memoryUsage.length);
        for (let i = 0; i < object.memoryUsage.length; ++i) {
          if (!$util.isObject(object.memoryUsage[i]))
            throw $TypeError(".inference.ModelStatistics.memoryUsage: object expected");
          message.memoryUsage[i] = $root.inference.MemoryUsage.fromObject(object.memoryUsage[i], _depth + 1);
        }
      }
      if (object.responseStats) {
        if (!$util.isObject(object.responseStats))
          throw $TypeError(".inference.ModelStatistics.responseStats: object expected");
        message.responseStats = {};
        for (let keys = $Object.keys(object.responseStats), i = 0; i < keys.length; ++i) {
          if (keys[i] === "__proto__")
            $util.makeProp(message.responseStats, keys[i]);
          if (!$util.isObject(object.responseStats[keys[i]]))
            throw $TypeError(".inference.ModelStatistics.responseStats: object expected");
          message.responseStats[keys[i]] = $root.inference.InferResponseStatistics.fromObject(object.responseStats[keys[i]], _depth + 1);
        }
      }
      return message;
    };

    return ModelStatistics;
  })();

  inference.ModelStatisticsResponse = (function() {
    const ModelStatisticsResponse = function (properties) {
      this.modelStats = [];
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelStatisticsResponse.prototype.modelStats = $util.emptyArray;

    ModelStatisticsResponse.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.modelStats != null && message.modelStats.length)
        for (let i = 0; i < message.modelStats.length; ++i)
          $root.inference.ModelStatistics.encode(message.modelStats[i], writer.uint32(/* id 1, wireType 2 =*/10).fork(), _depth + 1).ldelim();
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelStatisticsResponse.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelStatisticsResponse();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if (!(message.modelStats && message.modelStats.length))
              message.modelStats = [];
            message.modelStats.push($root.inference.ModelStatistics.decode(reader, reader.size(), $undefined, _depth + 1));
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelStatisticsResponse.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelStatisticsResponse)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelStatisticsResponse: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelStatisticsResponse();
      if (object.modelStats) {
        if (!$Array.isArray(object.modelStats))
          throw $TypeError(".inference.ModelStatisticsResponse.modelStats: array expected");
        message.modelStats = $Array(object.modelStats.length);
        for (let i = 0; i < object.modelStats.length; ++i) {
          if (!$util.isObject(object.modelStats[i]))
            throw $TypeError(".inference.ModelStatisticsResponse.modelStats: object expected");
          message.modelStats[i] = $root.inference.ModelStatistics.fromObject(object.modelStats[i], _depth + 1);
        }
      }
      return message;
    };

    return ModelStatisticsResponse;
  })();

  inference.ModelRepositoryParameter = (function() {
    const ModelRepositoryParameter = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelRepositoryParameter.prototype.boolParam = null;

    ModelRepositoryParameter.prototype.int64Param = null;

    ModelRepositoryParameter.prototype.stringParam = null;

    ModelRepositoryParameter.prototype.bytesParam = null;

    // OneOf field names bound to virtual getters and setters
    let $oneOfFields;

    $Object.defineProperty(ModelRepositoryParameter.prototype, "parameterChoice", {
      get: $util.oneOfGetter($oneOfFields = ["boolParam", "int64Param", "stringParam", "bytesParam"]),
      set: $util.oneOfSetter($oneOfFields)
    });

    ModelRepositoryParameter.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.boolParam != null && $Object.hasOwnProperty.call(message, "boolParam"))
        writer.uint32(/* id 1, wireType 0 =*/8).bool(message.boolParam);
      if (message.int64Param != null && $Object.hasOwnProperty.call(message, "int64Param"))
        writer.uint32(/* id 2, wireType 0 =*/16).int64(message.int64Param);
      if (message.stringParam != null && $Object.hasOwnProperty.call(message, "stringParam"))
        writer.uint32(/* id 3, wireType 2 =*/26).string(message.stringParam);
      if (message.bytesParam != null && $Object.hasOwnProperty.call(message, "bytesParam"))
        writer.uint32(/* id 4, wireType 2 =*/34).bytes(message.bytesParam);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelRepositoryParameter.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelRepositoryParameter();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 0)
              break;
            message.boolParam = reader.bool();
            message.parameterChoice = "boolParam";
            continue;
          }
        case 2: {
            if (wireType !== 0)
              break;
            message.int64Param = reader.int64();
            message.parameterChoice = "int64Param";
            continue;
          }
        case 3: {
            if (wireType !== 2)
              break;
            message.stringParam = reader.stringVerify();
            message.parameterChoice = "stringParam";
            continue;
          }
        case 4: {
            if (wireType !== 2)
              break;
            message.bytesParam = reader.bytes();
            message.parameterChoice = "bytesParam";
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelRepositoryParameter.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelRepositoryParameter)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelRepositoryParameter: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelRepositoryParameter();
      if (object.boolParam != null)
        message.boolParam = $Boolean(object.boolParam);
      if (object.int64Param != null)
        if ($util.Long)
          message.int64Param = $util.Long.fromValue(object.int64Param, false);
        else if (typeof object.int64Param === "string")
          message.int64Param = $parseInt(object.int64Param, 10);
        else if (typeof object.int64Param === "number")
          message.int64Param = object.int64Param;
        else if (typeof object.int64Param === "object")
          message.int64Param = new $util.LongBits(object.int64Param.low >>> 0, object.int64Param.high >>> 0).toNumber();
      if (object.stringParam != null)
        message.stringParam = $String(object.stringParam);
      if (object.bytesParam != null)
        if (typeof object.bytesParam === "string")
          $util.base64.decode(object.bytesParam, message.bytesParam = $util.newBuffer($util.base64.length(object.bytesParam)), 0);
        else if (object.bytesParam.length >= 0)
          message.bytesParam = object.bytesParam;
      return message;
    };

    return ModelRepositoryParameter;
  })();

  inference.RepositoryIndexRequest = (function() {
    const RepositoryIndexRequest = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    RepositoryIndexRequest.prototype.repositoryName = "";

    RepositoryIndexRequest.prototype.ready = false;

    RepositoryIndexRequest.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.repositoryName != null && $Object.hasOwnProperty.call(message, "repositoryName") && message.repositoryName !== "")
        writer.uint32(/* id 1, wireType 2 =*/10).string(message.repositoryName);
      if (message.ready != null && $Object.hasOwnProperty.call(message, "ready") && message.ready !== false)
        writer.uint32(/* id 2, wireType 0 =*/16).bool(message.ready);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    RepositoryIndexRequest.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.RepositoryIndexRequest();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.repositoryName = value;
            else
              delete message.repositoryName;
            continue;
          }
        case 2: {
            if (wireType !== 0)
              break;
            if (value = reader.bool())
              message.ready = value;
            else
              delete message.ready;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    RepositoryIndexRequest.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.RepositoryIndexRequest)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.RepositoryIndexRequest: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.RepositoryIndexRequest();
      if (object.repositoryName != null)
        if (typeof object.repositoryName !== "string" || object.repositoryName.length)
          message.repositoryName = $String(object.repositoryName);
      if (object.ready != null)
        if (object.ready)
          message.ready = $Boolean(object.ready);
      return message;
    };

    return RepositoryIndexRequest;
  })();

  inference.RepositoryIndexResponse = (function() {
    const RepositoryIndexResponse = function (properties) {
      this.models = [];
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    RepositoryIndexResponse.prototype.models = $util.emptyArray;

    RepositoryIndexResponse.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.models != null && message.models.length)
        for (let i = 0; i < message.models.length; ++i)
          $root.inference.RepositoryIndexResponse.ModelIndex.encode(message.models[i], writer.uint32(/* id 1, wireType 2 =*/10).fork(), _depth + 1).ldelim();
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    RepositoryIndexResponse.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.RepositoryIndexResponse();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if (!(message.models && message.models.length))
              message.models = [];
            message.models.push($root.inference.RepositoryIndexResponse.ModelIndex.decode(reader, reader.size(), $undefined, _depth + 1));
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    RepositoryIndexResponse.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.RepositoryIndexResponse)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.RepositoryIndexResponse: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.RepositoryIndexResponse();
      if (object.models) {
        if (!$Array.isArray(object.models))
          throw $TypeError(".inference.RepositoryIndexResponse.models: array expected");
        message.models = $Array(object.models.length);
        for (let i = 0; i < object.models.length; ++i) {
          if (!$util.isObject(object.models[i]))
            throw $TypeError(".inference.RepositoryIndexResponse.models: object expected");
          message.models[i] = $root.inference.RepositoryIndexResponse.ModelIndex.fromObject(object.models[i], _depth + 1);
        }
      }
      return message;
    };

    RepositoryIndexResponse.ModelIndex = (function() {
      const ModelIndex = function (properties) {
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      ModelIndex.prototype.name = "";

      ModelIndex.prototype.version = "";

      ModelIndex.prototype.state = "";

      ModelIndex.prototype.reason = "";

      ModelIndex.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
          writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
        if (message.version != null && $Object.hasOwnProperty.call(message, "version") && message.version !== "")
          writer.uint32(/* id 2, wireType 2 =*/18).string(message.version);
        if (message.state != null && $Object.hasOwnProperty.call(message, "state") && message.state !== "")
          writer.uint32(/* id 3, wireType 2 =*/26).string(message.state);
        if (message.reason != null && $Object.hasOwnProperty.call(message, "reason") && message.reason !== "")
          writer.uint32(/* id 4, wireType 2 =*/34).string(message.reason);
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      ModelIndex.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message, value;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.RepositoryIndexResponse.ModelIndex();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 2)
                break;
              if ((value = reader.stringVerify()).length)
                message.name = value;
              else
                delete message.name;
              continue;
            }
          case 2: {
              if (wireType !== 2)
                break;
              if ((value = reader.stringVerify()).length)
                message.version = value;
              else
                delete message.version;
              continue;
            }
          case 3: {
              if (wireType !== 2)
                break;
              if ((value = reader.stringVerify()).length)
                message.state = value;
              else
                delete message.state;
              continue;
            }
          case 4: {
              if (wireType !== 2)
                break;
              if ((value = reader.stringVerify()).length)
                message.reason = value;
              else
                delete message.reason;
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      ModelIndex.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.RepositoryIndexResponse.ModelIndex)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.RepositoryIndexResponse.ModelIndex: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.RepositoryIndexResponse.ModelIndex();
        if (object.name != null)
          if (typeof object.name !== "string" || object.name.length)
            message.name = $String(object.name);
        if (object.version != null)
          if (typeof object.version !== "string" || object.version.length)
            message.version = $String(object.version);
        if (object.state != null)
          if (typeof object.state !== "string" || object.state.length)
            message.state = $String(object.state);
        if (object.reason != null)
          if (typeof object.reason !== "string" || object.reason.length)
            message.reason = $String(object.reason);
        return message;
      };

      return ModelIndex;
    })();

    return RepositoryIndexResponse;
  })();

  inference.RepositoryModelLoadRequest = (function() {
    const RepositoryModelLoadRequest = function (properties) {
      this.parameters = {};
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    RepositoryModelLoadRequest.prototype.repositoryName = "";

    RepositoryModelLoadRequest.prototype.modelName = "";

    RepositoryModelLoadRequest.prototype.parameters = $util.emptyObject;

    RepositoryModelLoadRequest.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.repositoryName != null && $Object.hasOwnProperty.call(message, "repositoryName") && message.repositoryName !== "")
        writer.uint32(/* id 1, wireType 2 =*/10).string(message.repositoryName);
      if (message.modelName != null && $Object.hasOwnProperty.call(message, "modelName") && message.modelName !== "")
        writer.uint32(/* id 2, wireType 2 =*/18).string(message.modelName);
      if (message.parameters != null && $Object.hasOwnProperty.call(message, "parameters"))
        for (let keys = $Object.keys(message.parameters), i = 0; i < keys.length; ++i) {
          writer.uint32(/* id 3, wireType 2 =*/26).fork().uint32(/* id 1, wireType 2 =*/10).string(keys[i]);
          $root.inference.ModelRepositoryParameter.encode(message.parameters[keys[i]], writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim().ldelim();
        }
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    RepositoryModelLoadRequest.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, key, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.RepositoryModelLoadRequest();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.repositoryName = value;
            else
              delete message.repositoryName;
            continue;
          }
        case 2: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.modelName = value;
            else
              delete message.modelName;
            continue;
          }
        case 3: {
            if (wireType !== 2)
              break;
            if (message.parameters === $util.emptyObject)
              message.parameters = {};
            let end2 = reader.size() + reader.pos;
            if (end2 > reader.len)
              throw $RangeError("index out of range");
            reader.len = end2;
            key = "";
            value = null;
            while (reader.pos < end2) {
              let tag2 = reader.tag();
              wireType = tag2 & 7;
              switch (tag2 >>>= 3) {
              case 1:
                if (wireType !== 2)
                  break;
                key = reader.stringVerify();
                continue;
              case 2:
                if (wireType !== 2)
                  break;
                value = $root.inference.ModelRepositoryParameter.decode(reader, reader.size(), $undefined, _depth + 1, value);
                continue;
              }
              reader.skipType(wireType, _depth, tag2);
            }
            if (reader.pos !== end2)
              throw $RangeError("index out of range");
            reader.len = end;
            if (key === "__proto__")
              $util.makeProp(message.parameters, key);
            message.parameters[key] = value || new $root.inference.ModelRepositoryParameter();
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    RepositoryModelLoadRequest.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.RepositoryModelLoadRequest)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.RepositoryModelLoadRequest: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.RepositoryModelLoadRequest();
      if (object.repositoryName != null)
        if (typeof object.repositoryName !== "string" || object.repositoryName.length)
          message.repositoryName = $String(object.repositoryName);
      if (object.modelName != null)
        if (typeof object.modelName !== "string" || object.modelName.length)
          message.modelName = $String(object.modelName);
      if (object.parameters) {
        if (!$util.isObject(object.parameters))
          throw $TypeError(".inference.RepositoryModelLoadRequest.parameters: object expected");
        message.parameters = {};
        for (let keys = $Object.keys(object.parameters), i = 0; i < keys.length; ++i) {
          if (keys[i] === "__proto__")
            $util.makeProp(message.parameters, keys[i]);
          if (!$util.isObject(object.parameters[keys[i]]))
            throw $TypeError(".inference.RepositoryModelLoadRequest.parameters: object expected");
          message.parameters[keys[i]] = $root.inference.ModelRepositoryParameter.fromObject(object.parameters[keys[i]], _depth + 1);
        }
      }
      return message;
    };

    return RepositoryModelLoadRequest;
  })();

  inference.RepositoryModelLoadResponse = (function() {
    const RepositoryModelLoadResponse = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    RepositoryModelLoadResponse.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    RepositoryModelLoadResponse.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.RepositoryModelLoadResponse();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        reader.skipType(tag & 7, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    RepositoryModelLoadResponse.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.RepositoryModelLoadResponse)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.RepositoryModelLoadResponse: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      return new $root.inference.RepositoryModelLoadResponse();
    };

    return RepositoryModelLoadResponse;
  })();

  inference.RepositoryModelUnloadRequest = (function() {
    const RepositoryModelUnloadRequest = function (properties) {
      this.parameters = {};
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    RepositoryModelUnloadRequest.prototype.repositoryName = "";

    RepositoryModelUnloadRequest.prototype.modelName = "";

    RepositoryModelUnloadRequest.prototype.parameters = $util.emptyObject;

    RepositoryModelUnloadRequest.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.repositoryName != null && $Object.hasOwnProperty.call(message, "repositoryName") && message.repositoryName !== "")
        writer.uint32(/* id 1, wireType 2 =*/10).string(message.repositoryName);
      if (message.modelName != null && $Object.hasOwnProperty.call(message, "modelName") && message.modelName !== "")
        writer.uint32(/* id 2, wireType 2 =*/18).string(message.modelName);
      if (message.parameters != null && $Object.hasOwnProperty.call(message, "parameters"))
        for (let keys = $Object.keys(message.parameters), i = 0; i < keys.length; ++i) {
          writer.uint32(/* id 3, wireType 2 =*/26).fork().uint32(/* id 1, wireType 2 =*/10).string(keys[i]);
          $root.inference.ModelRepositoryParameter.encode(message.parameters[keys[i]], writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim().ldelim();
        }
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    RepositoryModelUnloadRequest.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, key, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.RepositoryModelUnloadRequest();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.repositoryName = value;
            else
              delete message.repositoryName;
            continue;
          }
        case 2: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.modelName = value;
            else
              delete message.modelName;
            continue;
          }
        case 3: {
            if (wireType !== 2)
              break;
            if (message.parameters === $util.emptyObject)
              message.parameters = {};
            let end2 = reader.size() + reader.pos;
            if (end2 > reader.len)
              throw $RangeError("index out of range");
            reader.len = end2;
            key = "";
            value = null;
            while (reader.pos < end2) {
              let tag2 = reader.tag();
              wireType = tag2 & 7;
              switch (tag2 >>>= 3) {
              case 1:
                if (wireType !== 2)
                  break;
                key = reader.stringVerify();
                continue;
              case 2:
                if (wireType !== 2)
                  break;
                value = $root.inference.ModelRepositoryParameter.decode(reader, reader.size(), $undefined, _depth + 1, value);
                continue;
              }
              reader.skipType(wireType, _depth, tag2);
            }
            if (reader.pos !== end2)
              throw $RangeError("index out of range");
            reader.len = end;
            if (key === "__proto__")
              $util.makeProp(message.parameters, key);
            message.parameters[key] = value || new $root.inference.ModelRepositoryParameter();
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    RepositoryModelUnloadRequest.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.RepositoryModelUnloadRequest)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.RepositoryModelUnloadRequest: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.RepositoryModelUnloadRequest();
      if (object.repositoryName != null)
        if (typeof object.repositoryName !== "string" || object.repositoryName.length)
          message.repositoryName = $String(object.repositoryName);
      if (object.modelName != null)
        if (typeof object.modelName !== "string" || object.modelName.length)
          message.modelName = $String(object.modelName);
      if (object.parameters) {
        if (!$util.isObject(object.parameters))
          throw $TypeError(".inference.RepositoryModelUnloadRequest.parameters: object expected");
        message.parameters = {};
        for (let keys = $Object.keys(object.parameters), i = 0; i < keys.length; ++i) {
          if (keys[i] === "__proto__")
            $util.makeProp(message.parameters, keys[i]);
          if (!$util.isObject(object.parameters[keys[i]]))
            throw $TypeError(".inference.RepositoryModelUnloadRequest.parameters: object expected");
          message.parameters[keys[i]] = $root.inference.ModelRepositoryParameter.fromObject(object.parameters[keys[i]], _depth + 1);
        }
      }
      return message;
    };

    return RepositoryModelUnloadRequest;
  })();

  inference.RepositoryModelUnloadResponse = (function() {
    const RepositoryModelUnloadResponse = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    RepositoryModelUnloadResponse.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    RepositoryModelUnloadResponse.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.RepositoryModelUnloadResponse();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        reader.skipType(tag & 7, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    RepositoryModelUnloadResponse.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.RepositoryModelUnloadResponse)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.RepositoryModelUnloadResponse: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      return new $root.inference.RepositoryModelUnloadResponse();
    };

    return RepositoryModelUnloadResponse;
  })();

  inference.SystemSharedMemoryStatusRequest = (function() {
    const SystemSharedMemoryStatusRequest = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    SystemSharedMemoryStatusRequest.prototype.name = "";

    SystemSharedMemoryStatusRequest.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
        writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    SystemSharedMemoryStatusRequest.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.SystemSharedMemoryStatusRequest();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.name = value;
            else
              delete message.name;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    SystemSharedMemoryStatusRequest.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.SystemSharedMemoryStatusRequest)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.SystemSharedMemoryStatusRequest: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.SystemSharedMemoryStatusRequest();
      if (object.name != null)
        if (typeof object.name !== "string" || object.name.length)
          message.name = $String(object.name);
      return message;
    };

    return SystemSharedMemoryStatusRequest;
  })();

  inference.SystemSharedMemoryStatusResponse = (function() {
    const SystemSharedMemoryStatusResponse = function (properties) {
      this.regions = {};
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    SystemSharedMemoryStatusResponse.prototype.regions = $util.emptyObject;

    SystemSharedMemoryStatusResponse.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.regions != null && $Object.hasOwnProperty.call(message, "regions"))
        for (let keys = $Object.keys(message.regions), i = 0; i < keys.length; ++i) {
          writer.uint32(/* id 1, wireType 2 =*/10).fork().uint32(/* id 1, wireType 2 =*/10).string(keys[i]);
          $root.inference.SystemSharedMemoryStatusResponse.RegionStatus.encode(message.regions[keys[i]], writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim().ldelim();
        }
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    SystemSharedMemoryStatusResponse.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, key, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.SystemSharedMemoryStatusResponse();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if (message.regions === $util.emptyObject)
              message.regions = {};
            let end2 = reader.size() + reader.pos;
            if (end2 > reader.len)
              throw $RangeError("index out of range");
            reader.len = end2;
            key = "";
            value = null;
            while (reader.pos < end2) {
              let tag2 = reader.tag();
              wireType = tag2 & 7;
              switch (tag2 >>>= 3) {
              case 1:
                if (wireType !== 2)
                  break;
                key = reader.stringVerify();
                continue;
              case 2:
                if (wireType !== 2)
                  break;
                value = $root.inference.SystemSharedMemoryStatusResponse.RegionStatus.decode(reader, reader.size(), $undefined, _depth + 1, value);
                continue;
              }
              reader.skipType(wireType, _depth, tag2);
            }
            if (reader.pos !== end2)
              throw $RangeError("index out of range");
            reader.len = end;
            if (key === "__proto__")
              $util.makeProp(message.regions, key);
            message.regions[key] = value || new $root.inference.SystemSharedMemoryStatusResponse.RegionStatus();
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    SystemSharedMemoryStatusResponse.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.SystemSharedMemoryStatusResponse)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.SystemSharedMemoryStatusResponse: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.SystemSharedMemoryStatusResponse();
      if (object.regions) {
        if (!$util.isObject(object.regions))
          throw $TypeError(".inference.SystemSharedMemoryStatusResponse.regions: object expected");
        message.regions = {};
        for (let keys = $Object.keys(object.regions), i = 0; i < keys.length; ++i) {
          if (keys[i] === "__proto__")
            $util.makeProp(message.regions, keys[i]);
          if (!$util.isObject(object.regions[keys[i]]))
            throw $TypeError(".inference.SystemSharedMemoryStatusResponse.regions: object expected");
          message.regions[keys[i]] = $root.inference.SystemSharedMemoryStatusResponse.RegionStatus.fromObject(object.regions[keys[i]], _depth + 1);
        }
      }
      return message;
    };

    SystemSharedMemoryStatusResponse.RegionStatus = (function() {
      const RegionStatus = function (properties) {
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      RegionStatus.prototype.name = "";

      RegionStatus.prototype.key = "";

      RegionStatus.prototype.offset = 0;

      RegionStatus.prototype.byteSize = 0;

      RegionStatus.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
          writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
        if (message.key != null && $Object.hasOwnProperty.call(message, "key") && message.key !== "")
          writer.uint32(/* id 2, wireType 2 =*/18).string(message.key);
        if (message.offset != null && $Object.hasOwnProperty.call(message, "offset") && (typeof message.offset === "object" ? message.offset.low || message.offset.high : message.offset !== 0))
          writer.uint32(/* id 3, wireType 0 =*/24).uint64(message.offset);
        if (message.byteSize != null && $Object.hasOwnProperty.call(message, "byteSize") && (typeof message.byteSize === "object" ? message.byteSize.low || message.byteSize.high : message.byteSize !== 0))
          writer.uint32(/* id 4, wireType 0 =*/32).uint64(message.byteSize);
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      RegionStatus.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message, value;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.SystemSharedMemoryStatusResponse.RegionStatus();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 2)
                break;
              if ((value = reader.stringVerify()).length)
                message.name = value;
              else
                delete message.name;
              continue;
            }
          case 2: {
              if (wireType !== 2)
                break;
              if ((value = reader.stringVerify()).length)
                message.key = value;
              else
                delete message.key;
              continue;
            }
          case 3: {
              if (wireType !== 0)
                break;
              if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
                message.offset = value;
              else
                delete message.offset;
              continue;
            }
          case 4: {
              if (wireType !== 0)
                break;
              if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
                message.byteSize = value;
              else
                delete message.byteSize;
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      RegionStatus.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.SystemSharedMemoryStatusResponse.RegionStatus)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.SystemSharedMemoryStatusResponse.RegionStatus: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.SystemSharedMemoryStatusResponse.RegionStatus();
        if (object.name != null)
          if (typeof object.name !== "string" || object.name.length)
            message.name = $String(object.name);
        if (object.key != null)
          if (typeof object.key !== "string" || object.key.length)
            message.key = $String(object.key);
        if (object.offset != null)
          if (typeof object.offset === "object" ? object.offset.low || object.offset.high : $Number(object.offset) !== 0)
            if ($util.Long)
              message.offset = $util.Long.fromValue(object.offset, true);
            else if (typeof object.offset === "string")
              message.offset = $parseInt(object.offset, 10);
            else if (typeof object.offset === "number")
              message.offset = object.offset;
            else if (typeof object.offset === "object")
              message.offset = new $util.LongBits(object.offset.low >>> 0, object.offset.high >>> 0).toNumber(true);
        if (object.byteSize != null)
          if (typeof object.byteSize === "object" ? object.byteSize.low || object.byteSize.high : $Number(object.byteSize) !== 0)
            if ($util.Long)
              message.byteSize = $util.Long.fromValue(object.byteSize, true);
            else if (typeof object.byteSize === "string")
              message.byteSize = $parseInt(object.byteSize, 10);
            else if (typeof object.byteSize === "number")
              message.byteSize = object.byteSize;
            else if (typeof object.byteSize === "object")
              message.byteSize = new $util.LongBits(object.byteSize.low >>> 0, object.byteSize.high >>> 0).toNumber(true);
        return message;
      };

      return RegionStatus;
    })();

    return SystemSharedMemoryStatusResponse;
  })();

  inference.SystemSharedMemoryRegisterRequest = (function() {
    const SystemSharedMemoryRegisterRequest = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    SystemSharedMemoryRegisterRequest.prototype.name = "";

    SystemSharedMemoryRegisterRequest.prototype.key = "";

    SystemSharedMemoryRegisterRequest.prototype.offset = 0;

    SystemSharedMemoryRegisterRequest.prototype.byteSize = 0;

    SystemSharedMemoryRegisterRequest.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
        writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
      if (message.key != null && $Object.hasOwnProperty.call(message, "key") && message.key !== "")
        writer.uint32(/* id 2, wireType 2 =*/18).string(message.key);
      if (message.offset != null && $Object.hasOwnProperty.call(message, "offset") && (typeof message.offset === "object" ? message.offset.low || message.offset.high : message.offset !== 0))
        writer.uint32(/* id 3, wireType 0 =*/24).uint64(message.offset);
      if (message.byteSize != null && $Object.hasOwnProperty.call(message, "byteSize") && (typeof message.byteSize === "object" ? message.byteSize.low || message.byteSize.high : message.byteSize !== 0))
        writer.uint32(/* id 4, wireType 0 =*/32).uint64(message.byteSize);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    SystemSharedMemoryRegisterRequest.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.SystemSharedMemoryRegisterRequest();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.name = value;
            else
              delete message.name;
            continue;
          }
        case 2: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.key = value;
            else
              delete message.key;
            continue;
          }
        case 3: {
            if (wireType !== 0)
              break;
            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
              message.offset = value;
            else
              delete message.offset;
            continue;
          }
        case 4: {
            if (wireType !== 0)
              break;
            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
              message.byteSize = value;
            else
              delete message.byteSize;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    SystemSharedMemoryRegisterRequest.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.SystemSharedMemoryRegisterRequest)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.SystemSharedMemoryRegisterRequest: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.SystemSharedMemoryRegisterRequest();
      if (object.name != null)
        if (typeof object.name !== "string" || object.name.length)
          message.name = $String(object.name);
      if (object.key != null)
        if (typeof object.key !== "string" || object.key.length)
          message.key = $String(object.key);
      if (object.offset != null)
        if (typeof object.offset === "object" ? object.offset.low || object.offset.high : $Number(object.offset) !== 0)
          if ($util.Long)
            message.offset = $util.Long.fromValue(object.offset, true);
          else if (typeof object.offset === "string")
            message.offset = $parseInt(object.offset, 10);
          else if (typeof object.offset === "number")
            message.offset = object.offset;
          else if (typeof object.offset === "object")
            message.offset = new $util.LongBits(object.offset.low >>> 0, object.offset.high >>> 0).toNumber(true);
      if (object.byteSize != null)
        if (typeof object.byteSize === "object" ? object.byteSize.low || object.byteSize.high : $Number(object.byteSize) !== 0)
          if ($util.Long)
            message.byteSize = $util.Long.fromValue(object.byteSize, true);
          else if (typeof object.byteSize === "string")
            message.byteSize = $parseInt(object.byteSize, 10);
          else if (typeof object.byteSize === "number")
            message.byteSize = object.byteSize;
          else if (typeof object.byteSize === "object")
            message.byteSize = new $util.LongBits(object.byteSize.low >>> 0, object.byteSize.high >>> 0).toNumber(true);
      return message;
    };

    return SystemSharedMemoryRegisterRequest;
  })();

  inference.SystemSharedMemoryRegisterResponse = (function() {
    const SystemSharedMemoryRegisterResponse = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    SystemSharedMemoryRegisterResponse.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    SystemSharedMemoryRegisterResponse.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.SystemSharedMemoryRegisterResponse();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        reader.skipType(tag & 7, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    SystemSharedMemoryRegisterResponse.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.SystemSharedMemoryRegisterResponse)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.SystemSharedMemoryRegisterResponse: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      return new $root.inference.SystemSharedMemoryRegisterResponse();
    };

    return SystemSharedMemoryRegisterResponse;
  })();

  inference.SystemSharedMemoryUnregisterRequest = (function() {
    const SystemSharedMemoryUnregisterRequest = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    SystemSharedMemoryUnregisterRequest.prototype.name = "";

    SystemSharedMemoryUnregisterRequest.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
        writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    SystemSharedMemoryUnregisterRequest.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.SystemSharedMemoryUnregisterRequest();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.name = value;
            else
              delete message.name;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    SystemSharedMemoryUnregisterRequest.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.SystemSharedMemoryUnregisterRequest)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.SystemSharedMemoryUnregisterRequest: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.SystemSharedMemoryUnregisterRequest();
      if (object.name != null)
        if (typeof object.name !== "string" || object.name.length)
          message.name = $String(object.name);
      return message;
    };

    return SystemSharedMemoryUnregisterRequest;
  })();

  inference.SystemSharedMemoryUnregisterResponse = (function() {
    const SystemSharedMemoryUnregisterResponse = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    SystemSharedMemoryUnregisterResponse.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    SystemSharedMemoryUnregisterResponse.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.SystemSharedMemoryUnregisterResponse();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        reader.skipType(tag & 7, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    SystemSharedMemoryUnregisterResponse.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.SystemSharedMemoryUnregisterResponse)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.SystemSharedMemoryUnregisterResponse: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      return new $root.inference.SystemSharedMemoryUnregisterResponse();
    };

    return SystemSharedMemoryUnregisterResponse;
  })();

  inference.CudaSharedMemoryStatusRequest = (function() {
    const CudaSharedMemoryStatusRequest = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    CudaSharedMemoryStatusRequest.prototype.name = "";

    CudaSharedMemoryStatusRequest.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
        writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    CudaSharedMemoryStatusRequest.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.CudaSharedMemoryStatusRequest();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.name = value;
            else
              delete message.name;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    CudaSharedMemoryStatusRequest.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.CudaSharedMemoryStatusRequest)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.CudaSharedMemoryStatusRequest: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.CudaSharedMemoryStatusRequest();
      if (object.name != null)
        if (typeof object.name !== "string" || object.name.length)
          message.name = $String(object.name);
      return message;
    };

    return CudaSharedMemoryStatusRequest;
  })();

  inference.CudaSharedMemoryStatusResponse = (function() {
    const CudaSharedMemoryStatusResponse = function (properties) {
      this.regions = {};
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    CudaSharedMemoryStatusResponse.prototype.regions = $util.emptyObject;

    CudaSharedMemoryStatusResponse.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.regions != null && $Object.hasOwnProperty.call(message, "regions"))
        for (let keys = $Object.keys(message.regions), i = 0; i < keys.length; ++i) {
          writer.uint32(/* id 1, wireType 2 =*/10).fork().uint32(/* id 1, wireType 2 =*/10).string(keys[i]);
          $root.inference.CudaSharedMemoryStatusResponse.RegionStatus.encode(message.regions[keys[i]], writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim().ldelim();
        }
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    CudaSharedMemoryStatusResponse.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, key, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.CudaSharedMemoryStatusResponse();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if (message.regions === $util.emptyObject)
              message.regions = {};
            let end2 = reader.size() + reader.pos;
            if (end2 > reader.len)
              throw $RangeError("index out of range");
            reader.len = end2;
            key = "";
            value = null;
            while (reader.pos < end2) {
              let tag2 = reader.tag();
              wireType = tag2 & 7;
              switch (tag2 >>>= 3) {
              case 1:
                if (wireType !== 2)
                  break;
                key = reader.stringVerify();
                continue;
              case 2:
                if (wireType !== 2)
                  break;
                value = $root.inference.CudaSharedMemoryStatusResponse.RegionStatus.decode(reader, reader.size(), $undefined, _depth + 1, value);
                continue;
              }
              reader.skipType(wireType, _depth, tag2);
            }
            if (reader.pos !== end2)
              throw $RangeError("index out of range");
            reader.len = end;
            if (key === "__proto__")
              $util.makeProp(message.regions, key);
            message.regions[key] = value || new $root.inference.CudaSharedMemoryStatusResponse.RegionStatus();
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    CudaSharedMemoryStatusResponse.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.CudaSharedMemoryStatusResponse)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.CudaSharedMemoryStatusResponse: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.CudaSharedMemoryStatusResponse();
      if (object.regions) {
        if (!$util.isObject(object.regions))
          throw $TypeError(".inference.CudaSharedMemoryStatusResponse.regions: object expected");
        message.regions = {};
        for (let keys = $Object.keys(object.regions), i = 0; i < keys.length; ++i) {
          if (keys[i] === "__proto__")
            $util.makeProp(message.regions, keys[i]);
          if (!$util.isObject(object.regions[keys[i]]))
            throw $TypeError(".inference.CudaSharedMemoryStatusResponse.regions: object expected");
          message.regions[keys[i]] = $root.inference.CudaSharedMemoryStatusResponse.RegionStatus.fromObject(object.regions[keys[i]], _depth + 1);
        }
      }
      return message;
    };

    CudaSharedMemoryStatusResponse.RegionStatus = (function() {
      const RegionStatus = function (properties) {
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      RegionStatus.prototype.name = "";

      RegionStatus.prototype.deviceId = 0;

      RegionStatus.prototype.byteSize = 0;

      RegionStatus.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
          writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
        if (message.deviceId != null && $Object.hasOwnProperty.call(message, "deviceId") && (typeof message.deviceId === "object" ? message.deviceId.low || message.deviceId.high : message.deviceId !== 0))
          writer.uint32(/* id 2, wireType 0 =*/16).uint64(message.deviceId);
        if (message.byteSize != null && $Object.hasOwnProperty.call(message, "byteSize") && (typeof message.byteSize === "object" ? message.byteSize.low || message.byteSize.high : message.byteSize !== 0))
          writer.uint32(/* id 3, wireType 0 =*/24).uint64(message.byteSize);
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      RegionStatus.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message, value;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.CudaSharedMemoryStatusResponse.RegionStatus();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 2)
                break;
              if ((value = reader.stringVerify()).length)
                message.name = value;
              else
                delete message.name;
              continue;
            }
          case 2: {
              if (wireType !== 0)
                break;
              if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
                message.deviceId = value;
              else
                delete message.deviceId;
              continue;
            }
          case 3: {
              if (wireType !== 0)
                break;
              if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
                message.byteSize = value;
              else
                delete message.byteSize;
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      RegionStatus.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.CudaSharedMemoryStatusResponse.RegionStatus)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.CudaSharedMemoryStatusResponse.RegionStatus: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.CudaSharedMemoryStatusResponse.RegionStatus();
        if (object.name != null)
          if (typeof object.name !== "string" || object.name.length)
            message.name = $String(object.name);
        if (object.deviceId != null)
          if (typeof object.deviceId === "object" ? object.deviceId.low || object.deviceId.high : $Number(object.deviceId) !== 0)
            if ($util.Long)
              message.deviceId = $util.Long.fromValue(object.deviceId, true);
            else if (typeof object.deviceId === "string")
              message.deviceId = $parseInt(object.deviceId, 10);
            else if (typeof object.deviceId === "number")
              message.deviceId = object.deviceId;
            else if (typeof object.deviceId === "object")
              message.deviceId = new $util.LongBits(object.deviceId.low >>> 0, object.deviceId.high >>> 0).toNumber(true);
        if (object.byteSize != null)
          if (typeof object.byteSize === "object" ? object.byteSize.low || object.byteSize.high : $Number(object.byteSize) !== 0)
            if ($util.Long)
              message.byteSize = $util.Long.fromValue(object.byteSize, true);
            else if (typeof object.byteSize === "string")
              message.byteSize = $parseInt(object.byteSize, 10);
            else if (typeof object.byteSize === "number")
              message.byteSize = object.byteSize;
            else if (typeof object.byteSize === "object")
              message.byteSize = new $util.LongBits(object.byteSize.low >>> 0, object.byteSize.high >>> 0).toNumber(true);
        return message;
      };

      return RegionStatus;
    })();

    return CudaSharedMemoryStatusResponse;
  })();

  inference.CudaSharedMemoryRegisterRequest = (function() {
    const CudaSharedMemoryRegisterRequest = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    CudaSharedMemoryRegisterRequest.prototype.name = "";

    CudaSharedMemoryRegisterRequest.prototype.rawHandle = $util.newBuffer([]);

    CudaSharedMemoryRegisterRequest.prototype.deviceId = 0;

    CudaSharedMemoryRegisterRequest.prototype.byteSize = 0;

    CudaSharedMemoryRegisterRequest.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
        writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
      if (message.rawHandle != null && $Object.hasOwnProperty.call(message, "rawHandle") && message.rawHandle.length)
        writer.uint32(/* id 2, wireType 2 =*/18).bytes(message.rawHandle);
      if (message.deviceId != null && $Object.hasOwnProperty.call(message, "deviceId") && (typeof message.deviceId === "object" ? message.deviceId.low || message.deviceId.high : message.deviceId !== 0))
        writer.uint32(/* id 3, wireType 0 =*/24).int64(message.deviceId);
      if (message.byteSize != null && $Object.hasOwnProperty.call(message, "byteSize") && (typeof message.byteSize === "object" ? message.byteSize.low || message.byteSize.high : message.byteSize !== 0))
        writer.uint32(/* id 4, wireType 0 =*/32).uint64(message.byteSize);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    CudaSharedMemoryRegisterRequest.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.CudaSharedMemoryRegisterRequest();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.name = value;
            else
              delete message.name;
            continue;
          }
        case 2: {
            if (wireType !== 2)
              break;
            if ((value = reader.bytes()).length)
              message.rawHandle = value;
            else
              delete message.rawHandle;
            continue;
          }
        case 3: {
            if (wireType !== 0)
              break;
            if (typeof (value = reader.int64()) === "object" ? value.low || value.high : value !== 0)
              message.deviceId = value;
            else
              delete message.deviceId;
            continue;
          }
        case 4: {
            if (wireType !== 0)
              break;
            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
              message.byteSize = value;
            else
              delete message.byteSize;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    CudaSharedMemoryRegisterRequest.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.CudaSharedMemoryRegisterRequest)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.CudaSharedMemoryRegisterRequest: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.CudaSharedMemoryRegisterRequest();
      if (object.name != null)
        if (typeof object.name !== "string" || object.name.length)
          message.name = $String(object.name);
      if (object.rawHandle != null)
        if (object.rawHandle.length)
          if (typeof object.rawHandle === "string")
            $util.base64.decode(object.rawHandle, message.rawHandle = $util.newBuffer($util.base64.length(object.rawHandle)), 0);
          else if (object.rawHandle.length >= 0)
            message.rawHandle = object.rawHandle;
      if (object.deviceId != null)
        if (typeof object.deviceId === "object" ? object.deviceId.low || object.deviceId.high : $Number(object.deviceId) !== 0)
          if ($util.Long)
            message.deviceId = $util.Long.fromValue(object.deviceId, false);
          else if (typeof object.deviceId === "string")
            message.deviceId = $parseInt(object.deviceId, 10);
          else if (typeof object.deviceId === "number")
            message.deviceId = object.deviceId;
          else if (typeof object.deviceId === "object")
            message.deviceId = new $util.LongBits(object.deviceId.low >>> 0, object.deviceId.high >>> 0).toNumber();
      if (object.byteSize != null)
        if (typeof object.byteSize === "object" ? object.byteSize.low || object.byteSize.high : $Number(object.byteSize) !== 0)
          if ($util.Long)
            message.byteSize = $util.Long.fromValue(object.byteSize, true);
          else if (typeof object.byteSize === "string")
            message.byteSize = $parseInt(object.byteSize, 10);
          else if (typeof object.byteSize === "number")
            message.byteSize = object.byteSize;
          else if (typeof object.byteSize === "object")
            message.byteSize = new $util.LongBits(object.byteSize.low >>> 0, object.byteSize.high >>> 0).toNumber(true);
      return message;
    };

    return CudaSharedMemoryRegisterRequest;
  })();

  inference.CudaSharedMemoryRegisterResponse = (function() {
    const CudaSharedMemoryRegisterResponse = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    CudaSharedMemoryRegisterResponse.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    CudaSharedMemoryRegisterResponse.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.CudaSharedMemoryRegisterResponse();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        reader.skipType(tag & 7, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    CudaSharedMemoryRegisterResponse.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.CudaSharedMemoryRegisterResponse)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.CudaSharedMemoryRegisterResponse: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      return new $root.inference.CudaSharedMemoryRegisterResponse();
    };

    return CudaSharedMemoryRegisterResponse;
  })();

  inference.CudaSharedMemoryUnregisterRequest = (function() {
    const CudaSharedMemoryUnregisterRequest = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    CudaSharedMemoryUnregisterRequest.prototype.name = "";

    CudaSharedMemoryUnregisterRequest.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
        writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    CudaSharedMemoryUnregisterRequest.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.CudaSharedMemoryUnregisterRequest();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.name = value;
            else
              delete message.name;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    CudaSharedMemoryUnregisterRequest.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.CudaSharedMemoryUnregisterRequest)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.CudaSharedMemoryUnregisterRequest: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.CudaSharedMemoryUnregisterRequest();
      if (object.name != null)
        if (typeof object.name !== "string" || object.name.length)
          message.name = $String(object.name);
      return message;
    };

    return CudaSharedMemoryUnregisterRequest;
  })();

  inference.CudaSharedMemoryUnregisterResponse = (function() {
    const CudaSharedMemoryUnregisterResponse = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    CudaSharedMemoryUnregisterResponse.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    CudaSharedMemoryUnregisterResponse.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.CudaSharedMemoryUnregisterResponse();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        reader.skipType(tag & 7, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    CudaSharedMemoryUnregisterResponse.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.CudaSharedMemoryUnregisterResponse)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.CudaSharedMemoryUnregisterResponse: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      return new $root.inference.CudaSharedMemoryUnregisterResponse();
    };

    return CudaSharedMemoryUnregisterResponse;
  })();

  inference.TraceSettingRequest = (function() {
    const TraceSettingRequest = function (properties) {
      this.settings = {};
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    TraceSettingRequest.prototype.settings = $util.emptyObject;

    TraceSettingRequest.prototype.modelName = "";

    TraceSettingRequest.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.settings != null && $Object.hasOwnProperty.call(message, "settings"))
        for (let keys = $Object.keys(message.settings), i = 0; i < keys.length; ++i) {
          writer.uint32(/* id 1, wireType 2 =*/10).fork().uint32(/* id 1, wireType 2 =*/10).string(keys[i]);
          $root.inference.TraceSettingRequest.SettingValue.encode(message.settings[keys[i]], writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim().ldelim();
        }
      if (message.modelName != null && $Object.hasOwnProperty.call(message, "modelName") && message.modelName !== "")
        writer.uint32(/* id 2, wireType 2 =*/18).string(message.modelName);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    TraceSettingRequest.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, key, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.TraceSettingRequest();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if (message.settings === $util.emptyObject)
              message.settings = {};
            let end2 = reader.size() + reader.pos;
            if (end2 > reader.len)
              throw $RangeError("index out of range");
            reader.len = end2;
            key = "";
            value = null;
            while (reader.pos < end2) {
              let tag2 = reader.tag();
              wireType = tag2 & 7;
              switch (tag2 >>>= 3) {
              case 1:
                if (wireType !== 2)
                  break;
                key = reader.stringVerify();
                continue;
              case 2:
                if (wireType !== 2)
                  break;
                value = $root.inference.TraceSettingRequest.SettingValue.decode(reader, reader.size(), $undefined, _depth + 1, value);
                continue;
              }
              reader.skipType(wireType, _depth, tag2);
            }
            if (reader.pos !== end2)
              throw $RangeError("index out of range");
            reader.len = end;
            if (key === "__proto__")
              $util.makeProp(message.settings, key);
            message.settings[key] = value || new $root.inference.TraceSettingRequest.SettingValue();
            continue;
          }
        case 2: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.modelName = value;
            else
              delete message.modelName;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    TraceSettingRequest.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.TraceSettingRequest)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.TraceSettingRequest: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.TraceSettingRequest();
      if (object.settings) {
        if (!$util.isObject(object.settings))
          throw $TypeError(".inference.TraceSettingRequest.settings: object expected");
        message.settings = {};
        for (let keys = $Object.keys(object.settings), i = 0; i < keys.length; ++i) {
          if (keys[i] === "__proto__")
            $util.makeProp(message.settings, keys[i]);
          if (!$util.isObject(object.settings[keys[i]]))
            throw $TypeError(".inference.TraceSettingRequest.settings: object expected");
          message.settings[keys[i]] = $root.inference.TraceSettingRequest.SettingValue.fromObject(object.settings[keys[i]], _depth + 1);
        }
      }
      if (object.modelName != null)
        if (typeof object.modelName !== "string" || object.modelName.length)
          message.modelName = $String(object.modelName);
      return message;
    };

    TraceSettingRequest.SettingValue = (function() {
      const SettingValue = function (properties) {
        this.value = [];
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      SettingValue.prototype.value = $util.emptyArray;

      SettingValue.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.value != null && message.value.length)
          for (let i = 0; i < message.value.length; ++i)
            writer.uint32(/* id 1, wireType 2 =*/10).string(message.value[i]);
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      SettingValue.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.TraceSettingRequest.SettingValue();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 2)
                break;
              if (!(message.value && message.value.length))
                message.value = [];
              message.value.push(reader.stringVerify());
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      SettingValue.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.TraceSettingRequest.SettingValue)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.TraceSettingRequest.SettingValue: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.TraceSettingRequest.SettingValue();
        if (object.value) {
          if (!$Array.isArray(object.value))
            throw $TypeError(".inference.TraceSettingRequest.SettingValue.value: array expected");
          message.value = $Array(object.value.length);
          for (let i = 0; i < object.value.length; ++i)
            message.value[i] = $String(object.value[i]);
        }
        return message;
      };

      return SettingValue;
    })();

    return TraceSettingRequest;
  })();

  inference.TraceSettingResponse = (function() {
    const TraceSettingResponse = function (properties) {
      this.settings = {};
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    TraceSettingResponse.prototype.settings = $util.emptyObject;

    TraceSettingResponse.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.settings != null && $Object.hasOwnProperty.call(message, "settings"))
        for (let keys = $Object.keys(message.settings), i = 0; i < keys.length; ++i) {
          writer.uint32(/* id 1, wireType 2 =*/10).fork().uint32(/* id 1, wireType 2 =*/10).string(keys[i]);
          $root.inference.TraceSettingResponse.SettingValue.encode(message.settings[keys[i]], writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim().ldelim();
        }
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    TraceSettingResponse.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, key, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.TraceSettingResponse();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if (message.settings === $util.emptyObject)
              message.settings = {};
            let end2 = reader.size() + reader.pos;
            if (end2 > reader.len)
              throw $RangeError("index out of range");
            reader.len = end2;
            key = "";
            value = null;
            while (reader.pos < end2) {
              let tag2 = reader.tag();
              wireType = tag2 & 7;
              switch (tag2 >>>= 3) {
              case 1:
                if (wireType !== 2)
                  break;
                key = reader.stringVerify();
                continue;
              case 2:
                if (wireType !== 2)
                  break;
                value = $root.inference.TraceSettingResponse.SettingValue.decode(reader, reader.size(), $undefined, _depth + 1, value);
                continue;
              }
              reader.skipType(wireType, _depth, tag2);
            }
            if (reader.pos !== end2)
              throw $RangeError("index out of range");
            reader.len = end;
            if (key === "__proto__")
              $util.makeProp(message.settings, key);
            message.settings[key] = value || new $root.inference.TraceSettingResponse.SettingValue();
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    TraceSettingResponse.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.TraceSettingResponse)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.TraceSettingResponse: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.TraceSettingResponse();
      if (object.settings) {
        if (!$util.isObject(object.settings))
          throw $TypeError(".inference.TraceSettingResponse.settings: object expected");
        message.settings = {};
        for (let keys = $Object.keys(object.settings), i = 0; i < keys.length; ++i) {
          if (keys[i] === "__proto__")
            $util.makeProp(message.settings, keys[i]);
          if (!$util.isObject(object.settings[keys[i]]))
            throw $TypeError(".inference.TraceSettingResponse.settings: object expected");
          message.settings[keys[i]] = $root.inference.TraceSettingResponse.SettingValue.fromObject(object.settings[keys[i]], _depth + 1);
        }
      }
      return message;
    };

    TraceSettingResponse.SettingValue = (function() {
      const SettingValue = function (properties) {
        this.value = [];
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      SettingValue.prototype.value = $util.emptyArray;

      SettingValue.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.value != null && message.value.length)
          for (let i = 0; i < message.value.length; ++i)
            writer.uint32(/* id 1, wireType 2 =*/10).string(message.value[i]);
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      SettingValue.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.TraceSettingResponse.SettingValue();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 2)
                break;
              if (!(message.value && message.value.length))
                message.value = [];
              message.value.push(reader.stringVerify());
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      SettingValue.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.TraceSettingResponse.SettingValue)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.TraceSettingResponse.SettingValue: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.TraceSettingResponse.SettingValue();
        if (object.value) {
          if (!$Array.isArray(object.value))
            throw $TypeError(".inference.TraceSettingResponse.SettingValue.value: array expected");
          message.value = $Array(object.value.length);
          for (let i = 0; i < object.value.length; ++i)
            message.value[i] = $String(object.value[i]);
        }
        return message;
      };

      return SettingValue;
    })();

    return TraceSettingResponse;
  })();

  inference.LogSettingsRequest = (function() {
    const LogSettingsRequest = function (properties) {
      this.settings = {};
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    LogSettingsRequest.prototype.settings = $util.emptyObject;

    LogSettingsRequest.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.settings != null && $Object.hasOwnProperty.call(message, "settings"))
        for (let keys = $Object.keys(message.settings), i = 0; i < keys.length; ++i) {
          writer.uint32(/* id 1, wireType 2 =*/10).fork().uint32(/* id 1, wireType 2 =*/10).string(keys[i]);
          $root.inference.LogSettingsRequest.SettingValue.encode(message.settings[keys[i]], writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim().ldelim();
        }
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    LogSettingsRequest.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, key, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.LogSettingsRequest();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if (message.settings === $util.emptyObject)
              message.settings = {};
            let end2 = reader.size() + reader.pos;
            if (end2 > reader.len)
              throw $RangeError("index out of range");
            reader.len = end2;
            key = "";
            value = null;
            while (reader.pos < end2) {
              let tag2 = reader.tag();
              wireType = tag2 & 7;
              switch (tag2 >>>= 3) {
              case 1:
                if (wireType !== 2)
                  break;
                key = reader.stringVerify();
                continue;
              case 2:
                if (wireType !== 2)
                  break;
                value = $root.inference.LogSettingsRequest.SettingValue.decode(reader, reader.size(), $undefined, _depth + 1, value);
                continue;
              }
              reader.skipType(wireType, _depth, tag2);
            }
            if (reader.pos !== end2)
              throw $RangeError("index out of range");
            reader.len = end;
            if (key === "__proto__")
              $util.makeProp(message.settings, key);
            message.settings[key] = value || new $root.inference.LogSettingsRequest.SettingValue();
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    LogSettingsRequest.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.LogSettingsRequest)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.LogSettingsRequest: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.LogSettingsRequest();
      if (object.settings) {
        if (!$util.isObject(object.settings))
          throw $TypeError(".inference.LogSettingsRequest.settings: object expected");
        message.settings = {};
        for (let keys = $Object.keys(object.settings), i = 0; i < keys.length; ++i) {
          if (keys[i] === "__proto__")
            $util.makeProp(message.settings, keys[i]);
          if (!$util.isObject(object.settings[keys[i]]))
            throw $TypeError(".inference.LogSettingsRequest.settings: object expected");
          message.settings[keys[i]] = $root.inference.LogSettingsRequest.SettingValue.fromObject(object.settings[keys[i]], _depth + 1);
        }
      }
      return message;
    };

    LogSettingsRequest.SettingValue = (function() {
      const SettingValue = function (properties) {
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      SettingValue.prototype.boolParam = null;

      SettingValue.prototype.uint32Param = null;

      SettingValue.prototype.stringParam = null;

      // OneOf field names bound to virtual getters and setters
      let $oneOfFields;

      $Object.defineProperty(SettingValue.prototype, "parameterChoice", {
        get: $util.oneOfGetter($oneOfFields = ["boolParam", "uint32Param", "stringParam"]),
        set: $util.oneOfSetter($oneOfFields)
      });

      SettingValue.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.boolParam != null && $Object.hasOwnProperty.call(message, "boolParam"))
          writer.uint32(/* id 1, wireType 0 =*/8).bool(message.boolParam);
        if (message.uint32Param != null && $Object.hasOwnProperty.call(message, "uint32Param"))
          writer.uint32(/* id 2, wireType 0 =*/16).uint32(message.uint32Param);
        if (message.stringParam != null && $Object.hasOwnProperty.call(message, "stringParam"))
          writer.uint32(/* id 3, wireType 2 =*/26).string(message.stringParam);
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      SettingValue.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.LogSettingsRequest.SettingValue();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 0)
                break;
              message.boolParam = reader.bool();
              message.parameterChoice = "boolParam";
              continue;
            }
          case 2: {
              if (wireType !== 0)
                break;
              message.uint32Param = reader.uint32();
              message.parameterChoice = "uint32Param";
              continue;
            }
          case 3: {
              if (wireType !== 2)
                break;
              message.stringParam = reader.stringVerify();
              message.parameterChoice = "stringParam";
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      SettingValue.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.LogSettingsRequest.SettingValue)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.LogSettingsRequest.SettingValue: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.LogSettingsRequest.SettingValue();
        if (object.boolParam != null)
          message.boolParam = $Boolean(object.boolParam);
        if (object.uint32Param != null)
          message.uint32Param = object.uint32Param >>> 0;
        if (object.stringParam != null)
          message.stringParam = $String(object.stringParam);
        return message;
      };

      return SettingValue;
    })();

    return LogSettingsRequest;
  })();

  inference.LogSettingsResponse = (function() {
    const LogSettingsResponse = function (properties) {
      this.settings = {};
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    LogSettingsResponse.prototype.settings = $util.emptyObject;

    LogSettingsResponse.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.settings != null && $Object.hasOwnProperty.call(message, "settings"))
        for (let keys = $Object.keys(message.settings), i = 0; i < keys.length; ++i) {
          writer.uint32(/* id 1, wireType 2 =*/10).fork().uint32(/* id 1, wireType 2 =*/10).string(keys[i]);
          $root.inference.LogSettingsResponse.SettingValue.encode(message.settings[keys[i]], writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim().ldelim();
        }
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    LogSettingsResponse.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, key, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.LogSettingsResponse();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if (message.settings === $util.emptyObject)
              message.settings = {};
            let end2 = reader.size() + reader.pos;
            if (end2 > reader.len)
              throw $RangeError("index out of range");
            reader.len = end2;
            key = "";
            value = null;
            while (reader.pos < end2) {
              let tag2 = reader.tag();
              wireType = tag2 & 7;
              switch (tag2 >>>= 3) {
              case 1:
                if (wireType !== 2)
                  break;
                key = reader.stringVerify();
                continue;
              case 2:
                if (wireType !== 2)
                  break;
                value = $root.inference.LogSettingsResponse.SettingValue.decode(reader, reader.size(), $undefined, _depth + 1, value);
                continue;
              }
              reader.skipType(wireType, _depth, tag2);
            }
            if (reader.pos !== end2)
              throw $RangeError("index out of range");
            reader.len = end;
            if (key === "__proto__")
              $util.makeProp(message.settings, key);
            message.settings[key] = value || new $root.inference.LogSettingsResponse.SettingValue();
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    LogSettingsResponse.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.LogSettingsResponse)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.LogSettingsResponse: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.LogSettingsResponse();
      if (object.settings) {
        if (!$util.isObject(object.settings))
          throw $TypeError(".inference.LogSettingsResponse.settings: object expected");
        message.settings = {};
        for (let keys = $Object.keys(object.settings), i = 0; i < keys.length; ++i) {
          if (keys[i] === "__proto__")
            $util.makeProp(message.settings, keys[i]);
          if (!$util.isObject(object.settings[keys[i]]))
            throw $TypeError(".inference.LogSettingsResponse.settings: object expected");
          message.settings[keys[i]] = $root.inference.LogSettingsResponse.SettingValue.fromObject(object.settings[keys[i]], _depth + 1);
        }
      }
      return message;
    };

    LogSettingsResponse.SettingValue = (function() {
      const SettingValue = function (properties) {
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      SettingValue.prototype.boolParam = null;

      SettingValue.prototype.uint32Param = null;

      SettingValue.prototype.stringParam = null;

      // OneOf field names bound to virtual getters and setters
      let $oneOfFields;

      $Object.defineProperty(SettingValue.prototype, "parameterChoice", {
        get: $util.oneOfGetter($oneOfFields = ["boolParam", "uint32Param", "stringParam"]),
        set: $util.oneOfSetter($oneOfFields)
      });

      SettingValue.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.boolParam != null && $Object.hasOwnProperty.call(message, "boolParam"))
          writer.uint32(/* id 1, wireType 0 =*/8).bool(message.boolParam);
        if (message.uint32Param != null && $Object.hasOwnProperty.call(message, "uint32Param"))
          writer.uint32(/* id 2, wireType 0 =*/16).uint32(message.uint32Param);
        if (message.stringParam != null && $Object.hasOwnProperty.call(message, "stringParam"))
          writer.uint32(/* id 3, wireType 2 =*/26).string(message.stringParam);
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      SettingValue.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.LogSettingsResponse.SettingValue();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 0)
                break;
              message.boolParam = reader.bool();
              message.parameterChoice = "boolParam";
              continue;
            }
          case 2: {
              if (wireType !== 0)
                break;
              message.uint32Param = reader.uint32();
              message.parameterChoice = "uint32Param";
              continue;
            }
          case 3: {
              if (wireType !== 2)
                break;
              message.stringParam = reader.stringVerify();
              message.parameterChoice = "stringParam";
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      SettingValue.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.LogSettingsResponse.SettingValue)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.LogSettingsResponse.SettingValue: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.LogSettingsResponse.SettingValue();
        if (object.boolParam != null)
          message.boolParam = $Boolean(object.boolParam);
        if (object.uint32Param != null)
          message.uint32Param = object.uint32Param >>> 0;
        if (object.stringParam != null)
          message.stringParam = $String(object.stringParam);
        return message;
      };

      return SettingValue;
    })();

    return LogSettingsResponse;
  })();

  inference.DataType = (function() {
    const valuesById = $Object.create(null), values = $Object.create(valuesById);
    values[valuesById[0] = "TYPE_INVALID"] = 0;
    values[valuesById[1] = "TYPE_BOOL"] = 1;
    values[valuesById[2] = "TYPE_UINT8"] = 2;
    values[valuesById[3] = "TYPE_UINT16"] = 3;
    values[valuesById[4] = "TYPE_UINT32"] = 4;
    values[valuesById[5] = "TYPE_UINT64"] = 5;
    values[valuesById[6] = "TYPE_INT8"] = 6;
    values[valuesById[7] = "TYPE_INT16"] = 7;
    values[valuesById[8] = "TYPE_INT32"] = 8;
    values[valuesById[9] = "TYPE_INT64"] = 9;
    values[valuesById[10] = "TYPE_FP16"] = 10;
    values[valuesById[11] = "TYPE_FP32"] = 11;
    values[valuesById[12] = "TYPE_FP64"] = 12;
    values[valuesById[13] = "TYPE_STRING"] = 13;
    values[valuesById[14] = "TYPE_BF16"] = 14;
    return values;
  })();

  inference.ModelRateLimiter = (function() {
    const ModelRateLimiter = function (properties) {
      this.resources = [];
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelRateLimiter.prototype.resources = $util.emptyArray;

    ModelRateLimiter.prototype.priority = 0;

    ModelRateLimiter.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.resources != null && message.resources.length)
        for (let i = 0; i < message.resources.length; ++i)
          $root.inference.ModelRateLimiter.Resource.encode(message.resources[i], writer.uint32(/* id 1, wireType 2 =*/10).fork(), _depth + 1).ldelim();
      if (message.priority != null && $Object.hasOwnProperty.call(message, "priority") && message.priority !== 0)
        writer.uint32(/* id 2, wireType 0 =*/16).uint32(message.priority);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelRateLimiter.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelRateLimiter();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if (!(message.resources && message.resources.length))
              message.resources = [];
            message.resources.push($root.inference.ModelRateLimiter.Resource.decode(reader, reader.size(), $undefined, _depth + 1));
            continue;
          }
        case 2: {
            if (wireType !== 0)
              break;
            if (value = reader.uint32())
              message.priority = value;
            else
              delete message.priority;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelRateLimiter.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelRateLimiter)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelRateLimiter: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelRateLimiter();
      if (object.resources) {
        if (!$Array.isArray(object.resources))
          throw $TypeError(".inference.ModelRateLimiter.resources: array expected");
        message.resources = $Array(object.resources.length);
        for (let i = 0; i < object.resources.length; ++i) {
          if (!$util.isObject(object.resources[i]))
            throw $TypeError(".inference.ModelRateLimiter.resources: object expected");
          message.resources[i] = $root.inference.ModelRateLimiter.Resource.fromObject(object.resources[i], _depth + 1);
        }
      }
      if (object.priority != null)
        if ($Number(object.priority) !== 0)
          message.priority = object.priority >>> 0;
      return message;
    };

    ModelRateLimiter.toObject = function (message, options, _depth) {
      if (!options)
        options = {};
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let object = {};
      if (options.arrays || options.defaults)
        object.resources = [];
      if (options.defaults)
        object.priority = 0;
      if (message.resources && message.resources.length) {
        object.resources = $Array(message.resources.length);
        for (let j = 0; j < message.resources.length; ++j)
          object.resources[j] = $root.inference.ModelRateLimiter.Resource.toObject(message.resources[j], options, _depth + 1);
      }
      if (message.priority != null && $Object.hasOwnProperty.call(message, "priority"))
        object.priority = message.priority;
      return object;
    };

    ModelRateLimiter.Resource = (function() {
      const Resource = function (properties) {
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      Resource.prototype.name = "";

      Resource.prototype.global = false;

      Resource.prototype.count = 0;

      Resource.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
          writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
        if (message.global != null && $Object.hasOwnProperty.call(message, "global") && message.global !== false)
          writer.uint32(/* id 2, wireType 0 =*/16).bool(message.global);
        if (message.count != null && $Object.hasOwnProperty.call(message, "count") && message.count !== 0)
          writer.uint32(/* id 3, wireType 0 =*/24).uint32(message.count);
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      Resource.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message, value;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.ModelRateLimiter.Resource();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 2)
                break;
              if ((value = reader.stringVerify()).length)
                message.name = value;
              else
                delete message.name;
              continue;
            }
          case 2: {
              if (wireType !== 0)
                break;
              if (value = reader.bool())
                message.global = value;
              else
                delete message.global;
              continue;
            }
          case 3: {
              if (wireType !== 0)
                break;
              if (value = reader.uint32())
                message.count = value;
              else
                delete message.count;
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      Resource.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.ModelRateLimiter.Resource)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.ModelRateLimiter.Resource: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.ModelRateLimiter.Resource();
        if (object.name != null)
          if (typeof object.name !== "string" || object.name.length)
            message.name = $String(object.name);
        if (object.global != null)
          if (object.global)
            message.global = $Boolean(object.global);
        if (object.count != null)
          if ($Number(object.count) !== 0)
            message.count = object.count >>> 0;
        return message;
      };

      Resource.toObject = function (message, options, _depth) {
        if (!options)
          options = {};
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let object = {};
        if (options.defaults) {
          object.name = "";
          object.global = false;
          object.count = 0;
        }
        if (message.name != null && $Object.hasOwnProperty.call(message, "name"))
          object.name = message.name;
        if (message.global != null && $Object.hasOwnProperty.call(message, "global"))
          object.global = message.global;
        if (message.count != null && $Object.hasOwnProperty.call(message, "count"))
          object.count = message.count;
        return object;
      };

      return Resource;
    })();

    return ModelRateLimiter;
  })();

  inference.ModelInstanceGroup = (function() {
    const ModelInstanceGroup = function (properties) {
      this.gpus = [];
      this.secondaryDevices = [];
      this.profile = [];
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelInstanceGroup.prototype.name = "";

    ModelInstanceGroup.prototype.kind = 0;

    ModelInstanceGroup.prototype.count = 0;

    ModelInstanceGroup.prototype.rateLimiter = null;

    ModelInstanceGroup.prototype.gpus = $util.emptyArray;

    ModelInstanceGroup.prototype.secondaryDevices = $util.emptyArray;

    ModelInstanceGroup.prototype.profile = $util.emptyArray;

    ModelInstanceGroup.prototype.passive = false;

    ModelInstanceGroup.prototype.hostPolicy = "";

    ModelInstanceGroup.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
        writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
      if (message.count != null && $Object.hasOwnProperty.call(message, "count") && message.count !== 0)
        writer.uint32(/* id 2, wireType 0 =*/16).int32(message.count);
      if (message.gpus != null && message.gpus.length)
        writer.uint32(/* id 3, wireType 2 =*/26).int32s(message.gpus);
      if (message.kind != null && $Object.hasOwnProperty.call(message, "kind") && message.kind !== 0)
        writer.uint32(/* id 4, wireType 0 =*/32).int32(message.kind);
      if (message.profile != null && message.profile.length)
        for (let i = 0; i < message.profile.length; ++i)
          writer.uint32(/* id 5, wireType 2 =*/42).string(message.profile[i]);
      if (message.rateLimiter != null && $Object.hasOwnProperty.call(message, "rateLimiter"))
        $root.inference.ModelRateLimiter.encode(message.rateLimiter, writer.uint32(/* id 6, wireType 2 =*/50).fork(), _depth + 1).ldelim();
      if (message.passive != null && $Object.hasOwnProperty.call(message, "passive") && message.passive !== false)
        writer.uint32(/* id 7, wireType 0 =*/56).bool(message.passive);
      if (message.secondaryDevices != null && message.secondaryDevices.length)
        for (let i = 0; i < message.secondaryDevices.length; ++i)
          $root.inference.ModelInstanceGroup.SecondaryDevice.encode(message.secondaryDevices[i], writer.uint32(/* id 8, wireType 2 =*/66).fork(), _depth + 1).ldelim();
      if (message.hostPolicy != null && $Object.hasOwnProperty.call(message, "hostPolicy") && message.hostPolicy !== "")
        writer.uint32(/* id 9, wireType 2 =*/74).string(message.hostPolicy);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelInstanceGroup.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelInstanceGroup();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.name = value;
            else
              delete message.name;
            continue;
          }
        case 4: {
            if (wireType !== 0)
              break;
            if (value = reader.int32())
              message.kind = value;
            else
              delete message.kind;
            continue;
          }
        case 2: {
            if (wireType !== 0)
              break;
            if (value = reader.int32())
              message.count = value;
            else
              delete message.count;
            continue;
          }
        case 6: {
            if (wireType !== 2)
              break;
            message.rateLimiter = $root.inference.ModelRateLimiter.decode(reader, reader.size(), $undefined, _depth + 1, message.rateLimiter);
            continue;
          }
        case 3: {
            if (wireType === 2) {
              if (!(message.gpus && message.gpus.length))
                message.gpus = [];
              reader.int32s(message.gpus);
              continue;
            }
            if (wireType !== 0)
              break;
            if (!(message.gpus && message.gpus.length))
              message.gpus = [];
            message.gpus.push(reader.int32());
            continue;
          }
        case 8: {
            if (wireType !== 2)
              break;
            if (!(message.secondaryDevices && message.secondaryDevices.length))
              message.secondaryDevices = [];
            message.secondaryDevices.push($root.inference.ModelInstanceGroup.SecondaryDevice.decode(reader, reader.size(), $undefined, _depth + 1));
            continue;
          }
        case 5: {
            if (wireType !== 2)
              break;
            if (!(message.profile && message.profile.length))
              message.profile = [];
            message.profile.push(reader.stringVerify());
            continue;
          }
        case 7: {
            if (wireType !== 0)
              break;
            if (value = reader.bool())
              message.passive = value;
            else
              delete message.passive;
            continue;
          }
        case 9: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.hostPolicy = value;
            else
              delete message.hostPolicy;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelInstanceGroup.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelInstanceGroup)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelInstanceGroup: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelInstanceGroup();
      if (object.name != null)
        if (typeof object.name !== "string" || object.name.length)
          message.name = $String(object.name);
      if (object.kind !== 0 && (typeof object.kind !== "string" || $root.inference.ModelInstanceGroup.Kind[object.kind] !== 0))
        switch (object.kind) {
        case "KIND_AUTO":
        case 0:
          message.kind = 0;
          break;
        case "KIND_GPU":
        case 1:
          message.kind = 1;
          break;
        case "KIND_CPU":
        case 2:
          message.kind = 2;
          break;
        case "KIND_MODEL":
        case 3:
          message.kind = 3;
          break;
        default:
          if (typeof object.kind === "number" && (object.kind | 0) === object.kind)
            message.kind = object.kind;
        }
      if (object.count != null)
        if ($Number(object.count) !== 0)
          message.count = object.count | 0;
      if (object.rateLimiter != null) {
        if (!$util.isObject(object.rateLimiter))
          throw $TypeError(".inference.ModelInstanceGroup.rateLimiter: object expected");
        message.rateLimiter = $root.inference.ModelRateLimiter.fromObject(object.rateLimiter, _depth + 1);
      }
      if (object.gpus) {
        if (!$Array.isArray(object.gpus))
          throw $TypeError(".inference.ModelInstanceGroup.gpus: array expected");
        message.gpus = $Array(object.gpus.length);
        for (let i = 0; i < object.gpus.length; ++i)
          message.gpus[i] = object.gpus[i] | 0;
      }
      if (object.secondaryDevices) {
        if (!$Array.isArray(object.secondaryDevices))
          throw $TypeError(".inference.ModelInstanceGroup.secondaryDevices: array expected");
        message.secondaryDevices = $Array(object.secondaryDevices.length);
        for (let i = 0; i < object.secondaryDevices.length; ++i) {
          if (!$util.isObject(object.secondaryDevices[i]))
            throw $TypeError(".inference.ModelInstanceGroup.secondaryDevices: object expected");
          message.secondaryDevices[i] = $root.inference.ModelInstanceGroup.SecondaryDevice.fromObject(object.secondaryDevices[i], _depth + 1);
        }
      }
      if (object.profile) {
        if (!$Array.isArray(object.profile))
          throw $TypeError(".inference.ModelInstanceGroup.profile: array expected");
        message.profile = $Array(object.profile.length);
        for (let i = 0; i < object.profile.length; ++i)
          message.profile[i] = $String(object.profile[i]);
      }
      if (object.passive != null)
        if (object.passive)
          message.passive = $Boolean(object.passive);
      if (object.hostPolicy != null)
        if (typeof object.hostPolicy !== "string" || object.hostPolicy.length)
          message.hostPolicy = $String(object.hostPolicy);
      return message;
    };

    ModelInstanceGroup.toObject = function (message, options, _depth) {
      if (!options)
        options = {};
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let object = {};
      if (options.arrays || options.defaults) {
        object.gpus = [];
        object.profile = [];
        object.secondaryDevices = [];
      }
      if (options.defaults) {
        object.name = "";
        object.count = 0;
        object.kind = options.enums === $String ? "KIND_AUTO" : 0;
        object.rateLimiter = null;
        object.passive = false;
        object.hostPolicy = "";
      }
      if (message.name != null && $Object.hasOwnProperty.call(message, "name"))
        object.name = message.name;
      if (message.count != null && $Object.hasOwnProperty.call(message, "count"))
        object.count = message.count;
      if (message.gpus && message.gpus.length) {
        object.gpus = $Array(message.gpus.length);
        for (let j = 0; j < message.gpus.length; ++j)
          object.gpus[j] = message.gpus[j];
      }
      if (message.kind != null && $Object.hasOwnProperty.call(message, "kind"))
        object.kind = options.enums === $String ? $root.inference.ModelInstanceGroup.Kind[message.kind] === $undefined ? message.kind : $root.inference.ModelInstanceGroup.Kind[message.kind] : message.kind;
      if (message.profile && message.profile.length) {
        object.profile = $Array(message.profile.length);
        for (let j = 0; j < message.profile.length; ++j)
          object.profile[j] = message.profile[j];
      }
      if (message.rateLimiter != null && $Object.hasOwnProperty.call(message, "rateLimiter"))
        object.rateLimiter = $root.inference.ModelRateLimiter.toObject(message.rateLimiter, options, _depth + 1);
      if (message.passive != null && $Object.hasOwnProperty.call(message, "passive"))
        object.passive = message.passive;
      if (message.secondaryDevices && message.secondaryDevices.length) {
        object.secondaryDevices = $Array(message.secondaryDevices.length);
        for (let j = 0; j < message.secondaryDevices.length; ++j)
          object.secondaryDevices[j] = $root.inference.ModelInstanceGroup.SecondaryDevice.toObject(message.secondaryDevices[j], options, _depth + 1);
      }
      if (message.hostPolicy != null && $Object.hasOwnProperty.call(message, "hostPolicy"))
        object.hostPolicy = message.hostPolicy;
      return object;
    };

    ModelInstanceGroup.Kind = (function() {
      const valuesById = $Object.create(null), values = $Object.create(valuesById);
      values[valuesById[0] = "KIND_AUTO"] = 0;
      values[valuesById[1] = "KIND_GPU"] = 1;
      values[valuesById[2] = "KIND_CPU"] = 2;
      values[valuesById[3] = "KIND_MODEL"] = 3;
      return values;
    })();

    ModelInstanceGroup.SecondaryDevice = (function() {
      const SecondaryDevice = function (properties) {
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      SecondaryDevice.prototype.kind = 0;

      SecondaryDevice.prototype.deviceId = 0;

      SecondaryDevice.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.kind != null && $Object.hasOwnProperty.call(message, "kind") && message.kind !== 0)
          writer.uint32(/* id 1, wireType 0 =*/8).int32(message.kind);
        if (message.deviceId != null && $Object.hasOwnProperty.call(message, "deviceId") && (typeof message.deviceId === "object" ? message.deviceId.low || message.deviceId.high : message.deviceId !== 0))
          writer.uint32(/* id 2, wireType 0 =*/16).int64(message.deviceId);
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      SecondaryDevice.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message, value;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.ModelInstanceGroup.SecondaryDevice();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 0)
                break;
              if (value = reader.int32())
                message.kind = value;
              else
                delete message.kind;
              continue;
            }
          case 2: {
              if (wireType !== 0)
                break;
              if (typeof (value = reader.int64()) === "object" ? value.low || value.high : value !== 0)
                message.deviceId = value;
              else
                delete message.deviceId;
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      SecondaryDevice.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.ModelInstanceGroup.SecondaryDevice)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.ModelInstanceGroup.SecondaryDevice: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.ModelInstanceGroup.SecondaryDevice();
        if (object.kind !== 0 && (typeof object.kind !== "string" || $root.inference.ModelInstanceGroup.SecondaryDevice.SecondaryDeviceKind[object.kind] !== 0))
          switch (object.kind) {
          case "KIND_NVDLA":
          case 0:
            message.kind = 0;
            break;
          default:
            if (typeof object.kind === "number" && (object.kind | 0) === object.kind)
              message.kind = object.kind;
          }
        if (object.deviceId != null)
          if (typeof object.deviceId === "object" ? object.deviceId.low || object.deviceId.high : $Number(object.deviceId) !== 0)
            if ($util.Long)
              message.deviceId = $util.Long.fromValue(object.deviceId, false);
            else if (typeof object.deviceId === "string")
              message.deviceId = $parseInt(object.deviceId, 10);
            else if (typeof object.deviceId === "number")
              message.deviceId = object.deviceId;
            else if (typeof object.deviceId === "object")
              message.deviceId = new $util.LongBits(object.deviceId.low >>> 0, object.deviceId.high >>> 0).toNumber();
        return message;
      };

      SecondaryDevice.toObject = function (message, options, _depth) {
        if (!options)
          options = {};
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let object = {};
        if (options.defaults) {
          object.kind = options.enums === $String ? "KIND_NVDLA" : 0;
          if ($util.Long) {
            let long = new $util.Long(0, 0, false);
            object.deviceId = options.longs === $String ? long.toString() : options.longs === $Number ? long.toNumber() : typeof $BigInt !== "undefined" && options.longs === $BigInt ? long.toBigInt() : long;
          } else
            object.deviceId = options.longs === $String ? "0" : typeof $BigInt !== "undefined" && options.longs === $BigInt ? $BigInt("0") : 0;
        }
        if (message.kind != null && $Object.hasOwnProperty.call(message, "kind"))
          object.kind = options.enums === $String ? $root.inference.ModelInstanceGroup.SecondaryDevice.SecondaryDeviceKind[message.kind] === $undefined ? message.kind : $root.inference.ModelInstanceGroup.SecondaryDevice.SecondaryDeviceKind[message.kind] : message.kind;
        if (message.deviceId != null && $Object.hasOwnProperty.call(message, "deviceId"))
          if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
            object.deviceId = typeof message.deviceId === "number" ? $BigInt(message.deviceId) : $util.Long.fromBits(message.deviceId.low >>> 0, message.deviceId.high >>> 0, false).toBigInt();
          else if (typeof message.deviceId === "number")
            object.deviceId = options.longs === $String ? $String(message.deviceId) : message.deviceId;
          else
            object.deviceId = options.longs === $String ? $util.Long.prototype.toString.call(message.deviceId) : options.longs === $Number ? new $util.LongBits(message.deviceId.low >>> 0, message.deviceId.high >>> 0).toNumber() : message.deviceId;
        return object;
      };

      SecondaryDevice.SecondaryDeviceKind = (function() {
        const valuesById = $Object.create(null), values = $Object.create(valuesById);
        values[valuesById[0] = "KIND_NVDLA"] = 0;
        return values;
      })();

      return SecondaryDevice;
    })();

    return ModelInstanceGroup;
  })();

  inference.ModelTensorReshape = (function() {
    const ModelTensorReshape = function (properties) {
      this.shape = [];
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelTensorReshape.prototype.shape = $util.emptyArray;

    ModelTensorReshape.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.shape != null && message.shape.length)
        writer.uint32(/* id 1, wireType 2 =*/10).int64s(message.shape);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelTensorReshape.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelTensorReshape();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType === 2) {
              if (!(message.shape && message.shape.length))
                message.shape = [];
              reader.int64s(message.shape);
              continue;
            }
            if (wireType !== 0)
              break;
            if (!(message.shape && message.shape.length))
              message.shape = [];
            message.shape.push(reader.int64());
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelTensorReshape.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelTensorReshape)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelTensorReshape: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelTensorReshape();
      if (object.shape) {
        if (!$Array.isArray(object.shape))
          throw $TypeError(".inference.ModelTensorReshape.shape: array expected");
        message.shape = $Array(object.shape.length);
        for (let i = 0; i < object.shape.length; ++i)
          if ($util.Long)
            message.shape[i] = $util.Long.fromValue(object.shape[i], false);
          else if (typeof object.shape[i] === "string")
            message.shape[i] = $parseInt(object.shape[i], 10);
          else if (typeof object.shape[i] === "number")
            message.shape[i] = object.shape[i];
          else if (typeof object.shape[i] === "object")
            message.shape[i] = new $util.LongBits(object.shape[i].low >>> 0, object.shape[i].high >>> 0).toNumber();
      }
      return message;
    };

    ModelTensorReshape.toObject = function (message, options, _depth) {
      if (!options)
        options = {};
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let object = {};
      if (options.arrays || options.defaults)
        object.shape = [];
      if (message.shape && message.shape.length) {
        object.shape = $Array(message.shape.length);
        for (let j = 0; j < message.shape.length; ++j)
          if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
            object.shape[j] = typeof message.shape[j] === "number" ? $BigInt(message.shape[j]) : $util.Long.fromBits(message.shape[j].low >>> 0, message.shape[j].high >>> 0, false).toBigInt();
          else if (typeof message.shape[j] === "number")
            object.shape[j] = options.longs === $String ? $String(message.shape[j]) : message.shape[j];
          else
            object.shape[j] = options.longs === $String ? $util.Long.prototype.toString.call(message.shape[j]) : options.longs === $Number ? new $util.LongBits(message.shape[j].low >>> 0, message.shape[j].high >>> 0).toNumber() : message.shape[j];
      }
      return object;
    };

    return ModelTensorReshape;
  })();

  inference.ModelInput = (function() {
    const ModelInput = function (properties) {
      this.dims = [];
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelInput.prototype.name = "";

    ModelInput.prototype.dataType = 0;

    ModelInput.prototype.format = 0;

    ModelInput.prototype.dims = $util.emptyArray;

    ModelInput.prototype.reshape = null;

    ModelInput.prototype.isShapeTensor = false;

    ModelInput.prototype.allowRaggedBatch = false;

    ModelInput.prototype.optional = false;

    ModelInput.prototype.isNonLinearFormatIo = false;

    ModelInput.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
        writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
      if (message.dataType != null && $Object.hasOwnProperty.call(message, "dataType") && message.dataType !== 0)
        writer.uint32(/* id 2, wireType 0 =*/16).int32(message.dataType);
      if (message.format != null && $Object.hasOwnProperty.call(message, "format") && message.format !== 0)
        writer.uint32(/* id 3, wireType 0 =*/24).int32(message.format);
      if (message.dims != null && message.dims.length)
        writer.uint32(/* id 4, wireType 2 =*/34).int64s(message.dims);
      if (message.reshape != null && $Object.hasOwnProperty.call(message, "reshape"))
        $root.inference.ModelTensorReshape.encode(message.reshape, writer.uint32(/* id 5, wireType 2 =*/42).fork(), _depth + 1).ldelim();
      if (message.isShapeTensor != null && $Object.hasOwnProperty.call(message, "isShapeTensor") && message.isShapeTensor !== false)
        writer.uint32(/* id 6, wireType 0 =*/48).bool(message.isShapeTensor);
      if (message.allowRaggedBatch != null && $Object.hasOwnProperty.call(message, "allowRaggedBatch") && message.allowRaggedBatch !== false)
        writer.uint32(/* id 7, wireType 0 =*/56).bool(message.allowRaggedBatch);
      if (message.optional != null && $Object.hasOwnProperty.call(message, "optional") && message.optional !== false)
        writer.uint32(/* id 8, wireType 0 =*/64).bool(message.optional);
      if (message.isNonLinearFormatIo != null && $Object.hasOwnProperty.call(message, "isNonLinearFormatIo") && message.isNonLinearFormatIo !== false)
        writer.uint32(/* id 9, wireType 0 =*/72).bool(message.isNonLinearFormatIo);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelInput.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelInput();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.name = value;
            else
              delete message.name;
            continue;
          }
        case 2: {
            if (wireType !== 0)
              break;
            if (value = reader.int32())
              message.dataType = value;
            else
              delete message.dataType;
            continue;
          }
        case 3: {
            if (wireType !== 0)
              break;
            if (value = reader.int32())
              message.format = value;
            else
              delete message.format;
            continue;
          }
        case 4: {
            if (wireType === 2) {
              if (!(message.dims && message.dims.length))
                message.dims = [];
              reader.int64s(message.dims);
              continue;
            }
            if (wireType !== 0)
              break;
            if (!(message.dims && message.dims.length))
              message.dims = [];
            message.dims.push(reader.int64());
            continue;
          }
        case 5: {
            if (wireType !== 2)
              break;
            message.reshape = $root.inference.ModelTensorReshape.decode(reader, reader.size(), $undefined, _depth + 1, message.reshape);
            continue;
          }
        case 6: {
            if (wireType !== 0)
              break;
            if (value = reader.bool())
              message.isShapeTensor = value;
            else
              delete message.isShapeTensor;
            continue;
          }
        case 7: {
            if (wireType !== 0)
              break;
            if (value = reader.bool())
              message.allowRaggedBatch = value;
            else
              delete message.allowRaggedBatch;
            continue;
          }
        case 8: {
            if (wireType !== 0)
              break;
            if (value = reader.bool())
              message.optional = value;
            else
              delete message.optional;
            continue;
          }
        case 9: {
            if (wireType !== 0)
              break;
            if (value = reader.bool())
              message.isNonLinearFormatIo = value;
            else
              delete message.isNonLinearFormatIo;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelInput.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelInput)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelInput: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelInput();
      if (object.name != null)
        if (typeof object.name !== "string" || object.name.length)
          message.name = $String(object.name);
      if (object.dataType !== 0 && (typeof object.dataType !== "string" || $root.inference.DataType[object.dataType] !== 0))
        switch (object.dataType) {
        case "TYPE_INVALID":
        case 0:
          message.dataType = 0;
          break;
        case "TYPE_BOOL":
        case 1:
          message.dataType = 1;
          break;
        case "TYPE_UINT8":
        case 2:
          message.dataType = 2;
          break;
        case "TYPE_UINT16":
        case 3:
          message.dataType = 3;
          break;
        case "TYPE_UINT32":
        case 4:
          message.dataType = 4;
          break;
        case "TYPE_UINT64":
        case 5:
          message.dataType = 5;
          break;
        case "TYPE_INT8":
        case 6:
          message.dataType = 6;
          break;
        case "TYPE_INT16":
        case 7:
          message.dataType = 7;
          break;
        case "TYPE_INT32":
        case 8:
          message.dataType = 8;
          break;
        case "TYPE_INT64":
        case 9:
          message.dataType = 9;
          break;
        case "TYPE_FP16":
        case 10:
          message.dataType = 10;
          break;
        case "TYPE_FP32":
        case 11:
          message.dataType = 11;
          break;
        case "TYPE_FP64":
        case 12:
          message.dataType = 12;
          break;
        case "TYPE_STRING":
        case 13:
          message.dataType = 13;
          break;
        case "TYPE_BF16":
        case 14:
          message.dataType = 14;
          break;
        default:
          if (typeof object.dataType === "number" && (object.dataType | 0) === object.dataType)
            message.dataType = object.dataType;
        }
      if (object.format !== 0 && (typeof object.format !== "string" || $root.inference.ModelInput.Format[object.format] !== 0))
        switch (object.format) {
        case "FORMAT_NONE":
        case 0:
          message.format = 0;
          break;
        case "FORMAT_NHWC":
        case 1:
          message.format = 1;
          break;
        case "FORMAT_NCHW":
        case 2:
          message.format = 2;
          break;
        default:
          if (typeof object.format === "number" && (object.format | 0) === object.format)
            message.format = object.format;
        }
      if (object.dims) {
        if (!$Array.isArray(object.dims))
          throw $TypeError(".inference.ModelInput.dims: array expected");
        message.dims = $Array(object.dims.length);
        for (let i = 0; i < object.dims.length; ++i)
          if ($util.Long)
            message.dims[i] = $util.Long.fromValue(object.dims[i], false);
          else if (typeof object.dims[i] === "string")
            message.dims[i] = $parseInt(object.dims[i], 10);
          else if (typeof object.dims[i] === "number")
            message.dims[i] = object.dims[i];
          else if (typeof object.dims[i] === "object")
            message.dims[i] = new $util.LongBits(object.dims[i].low >>> 0, object.dims[i].high >>> 0).toNumber();
      }
      if (object.reshape != null) {
        if (!$util.isObject(object.reshape))
          throw $TypeError(".inference.ModelInput.reshape: object expected");
        message.reshape = $root.inference.ModelTensorReshape.fromObject(object.reshape, _depth + 1);
      }
      if (object.isShapeTensor != null)
        if (object.isShapeTensor)
          message.isShapeTensor = $Boolean(object.isShapeTensor);
      if (object.allowRaggedBatch != null)
        if (object.allowRaggedBatch)
          message.allowRaggedBatch = $Boolean(object.allowRaggedBatch);
      if (object.optional != null)
        if (object.optional)
          message.optional = $Boolean(object.optional);
      if (object.isNonLinearFormatIo != null)
        if (object.isNonLinearFormatIo)
          message.isNonLinearFormatIo = $Boolean(object.isNonLinearFormatIo);
      return message;
    };

    ModelInput.toObject = function (message, options, _depth) {
      if (!options)
        options = {};
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let object = {};
      if (options.arrays || options.defaults)
        object.dims = [];
      if (options.defaults) {
        object.name = "";
        object.dataType = options.enums === $String ? "TYPE_INVALID" : 0;
        object.format = options.enums === $String ? "FORMAT_NONE" : 0;
        object.reshape = null;
        object.isShapeTensor = false;
        object.allowRaggedBatch = false;
        object.optional = false;
        object.isNonLinearFormatIo = false;
      }
      if (message.name != null && $Object.hasOwnProperty.call(message, "name"))
        object.name = message.name;
      if (message.dataType != null && $Object.hasOwnProperty.call(message, "dataType"))
        object.dataType = options.enums === $String ? $root.inference.DataType[message.dataType] === $undefined ? message.dataType : $root.inference.DataType[message.dataType] : message.dataType;
      if (message.format != null && $Object.hasOwnProperty.call(message, "format"))
        object.format = options.enums === $String ? $root.inference.ModelInput.Format[message.format] === $undefined ? message.format : $root.inference.ModelInput.Format[message.format] : message.format;
      if (message.dims && message.dims.length) {
        object.dims = $Array(message.dims.length);
        for (let j = 0; j < message.dims.length; ++j)
          if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
            object.dims[j] = typeof message.dims[j] === "number" ? $BigInt(message.dims[j]) : $util.Long.fromBits(message.dims[j].low >>> 0, message.dims[j].high >>> 0, false).toBigInt();
          else if (typeof message.dims[j] === "number")
            object.dims[j] = options.longs === $String ? $String(message.dims[j]) : message.dims[j];
          else
            object.dims[j] = options.longs === $String ? $util.Long.prototype.toString.call(message.dims[j]) : options.longs === $Number ? new $util.LongBits(message.dims[j].low >>> 0, message.dims[j].high >>> 0).toNumber() : message.dims[j];
      }
      if (message.reshape != null && $Object.hasOwnProperty.call(message, "reshape"))
        object.reshape = $root.inference.ModelTensorReshape.toObject(message.reshape, options, _depth + 1);
      if (message.isShapeTensor != null && $Object.hasOwnProperty.call(message, "isShapeTensor"))
        object.isShapeTensor = message.isShapeTensor;
      if (message.allowRaggedBatch != null && $Object.hasOwnProperty.call(message, "allowRaggedBatch"))
        object.allowRaggedBatch = message.allowRaggedBatch;
      if (message.optional != null && $Object.hasOwnProperty.call(message, "optional"))
        object.optional = message.optional;
      if (message.isNonLinearFormatIo != null && $Object.hasOwnProperty.call(message, "isNonLinearFormatIo"))
        object.isNonLinearFormatIo = message.isNonLinearFormatIo;
      return object;
    };

    ModelInput.Format = (function() {
      const valuesById = $Object.create(null), values = $Object.create(valuesById);
      values[valuesById[0] = "FORMAT_NONE"] = 0;
      values[valuesById[1] = "FORMAT_NHWC"] = 1;
      values[valuesById[2] = "FORMAT_NCHW"] = 2;
      return values;
    })();

    return ModelInput;
  })();

  inference.ModelOutput = (function() {
    const ModelOutput = function (properties) {
      this.dims = [];
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelOutput.prototype.name = "";

    ModelOutput.prototype.dataType = 0;

    ModelOutput.prototype.dims = $util.emptyArray;

    ModelOutput.prototype.reshape = null;

    ModelOutput.prototype.labelFilename = "";

    ModelOutput.prototype.isShapeTensor = false;

    ModelOutput.prototype.isNonLinearFormatIo = false;

    ModelOutput.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
        writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
      if (message.dataType != null && $Object.hasOwnProperty.call(message, "dataType") && message.dataType !== 0)
        writer.uint32(/* id 2, wireType 0 =*/16).int32(message.dataType);
      if (message.dims != null && message.dims.length)
        writer.uint32(/* id 3, wireType 2 =*/26).int64s(message.dims);
      if (message.labelFilename != null && $Object.hasOwnProperty.call(message, "labelFilename") && message.labelFilename !== "")
        writer.uint32(/* id 4, wireType 2 =*/34).string(message.labelFilename);
      if (message.reshape != null && $Object.hasOwnProperty.call(message, "reshape"))
        $root.inference.ModelTensorReshape.encode(message.reshape, writer.uint32(/* id 5, wireType 2 =*/42).fork(), _depth + 1).ldelim();
      if (message.isShapeTensor != null && $Object.hasOwnProperty.call(message, "isShapeTensor") && message.isShapeTensor !== false)
        writer.uint32(/* id 6, wireType 0 =*/48).bool(message.isShapeTensor);
      if (message.isNonLinearFormatIo != null && $Object.hasOwnProperty.call(message, "isNonLinearFormatIo") && message.isNonLinearFormatIo !== false)
        writer.uint32(/* id 7, wireType 0 =*/56).bool(message.isNonLinearFormatIo);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelOutput.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelOutput();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.name = value;
            else
              delete message.name;
            continue;
          }
        case 2: {
            if (wireType !== 0)
              break;
            if (value = reader.int32())
              message.dataType = value;
            else
              delete message.dataType;
            continue;
          }
        case 3: {
            if (wireType === 2) {
              if (!(message.dims && message.dims.length))
                message.dims = [];
              reader.int64s(message.dims);
              continue;
            }
            if (wireType !== 0)
              break;
            if (!(message.dims && message.dims.length))
              message.dims = [];
            message.dims.push(reader.int64());
            continue;
          }
        case 5: {
            if (wireType !== 2)
              break;
            message.reshape = $root.inference.ModelTensorReshape.decode(reader, reader.size(), $undefined, _depth + 1, message.reshape);
            continue;
          }
        case 4: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.labelFilename = value;
            else
              delete message.labelFilename;
            continue;
          }
        case 6: {
            if (wireType !== 0)
              break;
            if (value = reader.bool())
              message.isShapeTensor = value;
            else
              delete message.isShapeTensor;
            continue;
          }
        case 7: {
            if (wireType !== 0)
              break;
            if (value = reader.bool())
              message.isNonLinearFormatIo = value;
            else
              delete message.isNonLinearFormatIo;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelOutput.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelOutput)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelOutput: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelOutput();
      if (object.name != null)
        if (typeof object.name !== "string" || object.name.length)
          message.name = $String(object.name);
      if (object.dataType !== 0 && (typeof object.dataType !== "string" || $root.inference.DataType[object.dataType] !== 0))
        switch (object.dataType) {
        case "TYPE_INVALID":
        case 0:
          message.dataType = 0;
          break;
        case "TYPE_BOOL":
        case 1:
          message.dataType = 1;
          break;
        case "TYPE_UINT8":
        case 2:
          message.dataType = 2;
          break;
        case "TYPE_UINT16":
        case 3:
          message.dataType = 3;
          break;
        case "TYPE_UINT32":
        case 4:
          message.dataType = 4;
          break;
        case "TYPE_UINT64":
        case 5:
          message.dataType = 5;
          break;
        case "TYPE_INT8":
        case 6:
          message.dataType = 6;
          break;
        case "TYPE_INT16":
        case 7:
          message.dataType = 7;
          break;
        case "TYPE_INT32":
        case 8:
          message.dataType = 8;
          break;
        case "TYPE_INT64":
        case 9:
          message.dataType = 9;
          break;
        case "TYPE_FP16":
        case 10:
          message.dataType = 10;
          break;
        case "TYPE_FP32":
        case 11:
          message.dataType = 11;
          break;
        case "TYPE_FP64":
        case 12:
          message.dataType = 12;
          break;
        case "TYPE_STRING":
        case 13:
          message.dataType = 13;
          break;
        case "TYPE_BF16":
        case 14:
          message.dataType = 14;
          break;
        default:
          if (typeof object.dataType === "number" && (object.dataType | 0) === object.dataType)
            message.dataType = object.dataType;
        }
      if (object.dims) {
        if (!$Array.isArray(object.dims))
          throw $TypeError(".inference.ModelOutput.dims: array expected");
        message.dims = $Array(object.dims.length);
        for (let i = 0; i < object.dims.length; ++i)
          if ($util.Long)
            message.dims[i] = $util.Long.fromValue(object.dims[i], false);
          else if (typeof object.dims[i] === "string")
            message.dims[i] = $parseInt(object.dims[i], 10);
          else if (typeof object.dims[i] === "number")
            message.dims[i] = object.dims[i];
          else if (typeof object.dims[i] === "object")
            message.dims[i] = new $util.LongBits(object.dims[i].low >>> 0, object.dims[i].high >>> 0).toNumber();
      }
      if (object.reshape != null) {
        if (!$util.isObject(object.reshape))
          throw $TypeError(".inference.ModelOutput.reshape: object expected");
        message.reshape = $root.inference.ModelTensorReshape.fromObject(object.reshape, _depth + 1);
      }
      if (object.labelFilename != null)
        if (typeof object.labelFilename !== "string" || object.labelFilename.length)
          message.labelFilename = $String(object.labelFilename);
      if (object.isShapeTensor != null)
        if (object.isShapeTensor)
          message.isShapeTensor = $Boolean(object.isShapeTensor);
      if (object.isNonLinearFormatIo != null)
        if (object.isNonLinearFormatIo)
          message.isNonLinearFormatIo = $Boolean(object.isNonLinearFormatIo);
      return message;
    };

    ModelOutput.toObject = function (message, options, _depth) {
      if (!options)
        options = {};
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let object = {};
      if (options.arrays || options.defaults)
        object.dims = [];
      if (options.defaults) {
        object.name = "";
        object.dataType = options.enums === $String ? "TYPE_INVALID" : 0;
        object.labelFilename = "";
        object.reshape = null;
        object.isShapeTensor = false;
        object.isNonLinearFormatIo = false;
      }
      if (message.name != null && $Object.hasOwnProperty.call(message, "name"))
        object.name = message.name;
      if (message.dataType != null && $Object.hasOwnProperty.call(message, "dataType"))
        object.dataType = options.enums === $String ? $root.inference.DataType[message.dataType] === $undefined ? message.dataType : $root.inference.DataType[message.dataType] : message.dataType;
      if (message.dims && message.dims.length) {
        object.dims = $Array(message.dims.length);
        for (let j = 0; j < message.dims.length; ++j)
          if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
            object.dims[j] = typeof message.dims[j] === "number" ? $BigInt(message.dims[j]) : $util.Long.fromBits(message.dims[j].low >>> 0, message.dims[j].high >>> 0, false).toBigInt();
          else if (typeof message.dims[j] === "number")
            object.dims[j] = options.longs === $String ? $String(message.dims[j]) : message.dims[j];
          else
            object.dims[j] = options.longs === $String ? $util.Long.prototype.toString.call(message.dims[j]) : options.longs === $Number ? new $util.LongBits(message.dims[j].low >>> 0, message.dims[j].high >>> 0).toNumber() : message.dims[j];
      }
      if (message.labelFilename != null && $Object.hasOwnProperty.call(message, "labelFilename"))
        object.labelFilename = message.labelFilename;
      if (message.reshape != null && $Object.hasOwnProperty.call(message, "reshape"))
        object.reshape = $root.inference.ModelTensorReshape.toObject(message.reshape, options, _depth + 1);
      if (message.isShapeTensor != null && $Object.hasOwnProperty.call(message, "isShapeTensor"))
        object.isShapeTensor = message.isShapeTensor;
      if (message.isNonLinearFormatIo != null && $Object.hasOwnProperty.call(message, "isNonLinearFormatIo"))
        object.isNonLinearFormatIo = message.isNonLinearFormatIo;
      return object;
    };

    return ModelOutput;
  })();

  inference.BatchInput = (function() {
    const BatchInput = function (properties) {
      this.targetName = [];
      this.sourceInput = [];
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    BatchInput.prototype.kind = 0;

    BatchInput.prototype.targetName = $util.emptyArray;

    BatchInput.prototype.dataType = 0;

    BatchInput.prototype.sourceInput = $util.emptyArray;

    BatchInput.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.kind != null && $Object.hasOwnProperty.call(message, "kind") && message.kind !== 0)
        writer.uint32(/* id 1, wireType 0 =*/8).int32(message.kind);
      if (message.targetName != null && message.targetName.length)
        for (let i = 0; i < message.targetName.length; ++i)
          writer.uint32(/* id 2, wireType 2 =*/18).string(message.targetName[i]);
      if (message.dataType != null && $Object.hasOwnProperty.call(message, "dataType") && message.dataType !== 0)
        writer.uint32(/* id 3, wireType 0 =*/24).int32(message.dataType);
      if (message.sourceInput != null && message.sourceInput.length)
        for (let i = 0; i < message.sourceInput.length; ++i)
          writer.uint32(/* id 4, wireType 2 =*/34).string(message.sourceInput[i]);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    BatchInput.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.BatchInput();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 0)
              break;
            if (value = reader.int32())
              message.kind = value;
            else
              delete message.kind;
            continue;
          }
        case 2: {
            if (wireType !== 2)
              break;
            if (!(message.targetName && message.targetName.length))
              message.targetName = [];
            message.targetName.push(reader.stringVerify());
            continue;
          }
        case 3: {
            if (wireType !== 0)
              break;
            if (value = reader.int32())
              message.dataType = value;
            else
              delete message.dataType;
            continue;
          }
        case 4: {
            if (wireType !== 2)
              break;
            if (!(message.sourceInput && message.sourceInput.length))
              message.sourceInput = [];
            message.sourceInput.push(reader.stringVerify());
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    BatchInput.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.BatchInput)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.BatchInput: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.BatchInput();
      if (object.kind !== 0 && (typeof object.kind !== "string" || $root.inference.BatchInput.Kind[object.kind] !== 0))
        switch (object.kind) {
        case "BATCH_ELEMENT_COUNT":
        case 0:
          message.kind = 0;
          break;
        case "BATCH_ACCUMULATED_ELEMENT_COUNT":
        case 1:
          message.kind = 1;
          break;
        case "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO":
        case 2:
          message.kind = 2;
          break;
        case "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE":
        case 3:
          message.kind = 3;
          break;
        case "BATCH_ITEM_SHAPE":
        case 4:
          message.kind = 4;
          break;
        case "BATCH_ITEM_SHAPE_FLATTEN":
        case 5:
          message.kind = 5;
          break;
        default:
          if (typeof object.kind === "number" && (object.kind | 0) === object.kind)
            message.kind = object.kind;
        }
      if (object.targetName) {
        if (!$Array.isArray(object.targetName))
          throw $TypeError(".inference.BatchInput.targetName: array expected");
        message.targetName = $Array(object.targetName.length);
        for (let i = 0; i < object.targetName.length; ++i)
          message.targetName[i] = $String(object.targetName[i]);
      }
      if (object.dataType !== 0 && (typeof object.dataType !== "string" || $root.inference.DataType[object.dataType] !== 0))
        switch (object.dataType) {
        case "TYPE_INVALID":
        case 0:
          message.dataType = 0;
          break;
        case "TYPE_BOOL":
        case 1:
          message.dataType = 1;
          break;
        case "TYPE_UINT8":
        case 2:
          message.dataType = 2;
          break;
        case "TYPE_UINT16":
        case 3:
          message.dataType = 3;
          break;
        case "TYPE_UINT32":
        case 4:
          message.dataType = 4;
          break;
        case "TYPE_UINT64":
        case 5:
          message.dataType = 5;
          break;
        case "TYPE_INT8":
        case 6:
          message.dataType = 6;
          break;
        case "TYPE_INT16":
        case 7:
          message.dataType = 7;
          break;
        case "TYPE_INT32":
        case 8:
          message.dataType = 8;
          break;
        case "TYPE_INT64":
        case 9:
          message.dataType = 9;
          break;
        case "TYPE_FP16":
        case 10:
          message.dataType = 10;
          break;
        case "TYPE_FP32":
        case 11:
          message.dataType = 11;
          break;
        case "TYPE_FP64":
        case 12:
          message.dataType = 12;
          break;
        case "TYPE_STRING":
        case 13:
          message.dataType = 13;
          break;
        case "TYPE_BF16":
        case 14:
          message.dataType = 14;
          break;
        default:
          if (typeof object.dataType === "number" && (object.dataType | 0) === object.dataType)
            message.dataType = object.dataType;
        }
      if (object.sourceInput) {
        if (!$Array.isArray(object.sourceInput))
          throw $TypeError(".inference.BatchInput.sourceInput: array expected");
        message.sourceInput = $Array(object.sourceInput.length);
        for (let i = 0; i < object.sourceInput.length; ++i)
          message.sourceInput[i] = $String(object.sourceInput[i]);
      }
      return message;
    };

    BatchInput.toObject = function (message, options, _depth) {
      if (!options)
        options = {};
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let object = {};
      if (options.arrays || options.defaults) {
        object.targetName = [];
        object.sourceInput = [];
      }
      if (options.defaults) {
        object.kind = options.enums === $String ? "BATCH_ELEMENT_COUNT" : 0;
        object.dataType = options.enums === $String ? "TYPE_INVALID" : 0;
      }
      if (message.kind != null && $Object.hasOwnProperty.call(message, "kind"))
        object.kind = options.enums === $String ? $root.inference.BatchInput.Kind[message.kind] === $undefined ? message.kind : $root.inference.BatchInput.Kind[message.kind] : message.kind;
      if (message.targetName && message.targetName.length) {
        object.targetName = $Array(message.targetName.length);
        for (let j = 0; j < message.targetName.length; ++j)
          object.targetName[j] = message.targetName[j];
      }
      if (message.dataType != null && $Object.hasOwnProperty.call(message, "dataType"))
        object.dataType = options.enums === $String ? $root.inference.DataType[message.dataType] === $undefined ? message.dataType : $root.inference.DataType[message.dataType] : message.dataType;
      if (message.sourceInput && message.sourceInput.length) {
        object.sourceInput = $Array(message.sourceInput.length);
        for (let j = 0; j < message.sourceInput.length; ++j)
          object.sourceInput[j] = message.sourceInput[j];
      }
      return object;
    };

    BatchInput.Kind = (function() {
      const valuesById = $Object.create(null), values = $Object.create(valuesById);
      values[valuesById[0] = "BATCH_ELEMENT_COUNT"] = 0;
      values[valuesById[1] = "BATCH_ACCUMULATED_ELEMENT_COUNT"] = 1;
      values[valuesById[2] = "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO"] = 2;
      values[valuesById[3] = "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE"] = 3;
      values[valuesById[4] = "BATCH_ITEM_SHAPE"] = 4;
      values[valuesById[5] = "BATCH_ITEM_SHAPE_FLATTEN"] = 5;
      return values;
    })();

    return BatchInput;
  })();

  inference.BatchOutput = (function() {
    const BatchOutput = function (properties) {
      this.targetName = [];
      this.sourceInput = [];
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    BatchOutput.prototype.targetName = $util.emptyArray;

    BatchOutput.prototype.kind = 0;

    BatchOutput.prototype.sourceInput = $util.emptyArray;

    BatchOutput.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.targetName != null && message.targetName.length)
        for (let i = 0; i < message.targetName.length; ++i)
          writer.uint32(/* id 1, wireType 2 =*/10).string(message.targetName[i]);
      if (message.kind != null && $Object.hasOwnProperty.call(message, "kind") && message.kind !== 0)
        writer.uint32(/* id 2, wireType 0 =*/16).int32(message.kind);
      if (message.sourceInput != null && message.sourceInput.length)
        for (let i = 0; i < message.sourceInput.length; ++i)
          writer.uint32(/* id 3, wireType 2 =*/26).string(message.sourceInput[i]);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    BatchOutput.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.BatchOutput();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if (!(message.targetName && message.targetName.length))
              message.targetName = [];
            message.targetName.push(reader.stringVerify());
            continue;
          }
        case 2: {
            if (wireType !== 0)
              break;
            if (value = reader.int32())
              message.kind = value;
            else
              delete message.kind;
            continue;
          }
        case 3: {
            if (wireType !== 2)
              break;
            if (!(message.sourceInput && message.sourceInput.length))
              message.sourceInput = [];
            message.sourceInput.push(reader.stringVerify());
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    BatchOutput.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.BatchOutput)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.BatchOutput: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.BatchOutput();
      if (object.targetName) {
        if (!$Array.isArray(object.targetName))
          throw $TypeError(".inference.BatchOutput.targetName: array expected");
        message.targetName = $Array(object.targetName.length);
        for (let i = 0; i < object.targetName.length; ++i)
          message.targetName[i] = $String(object.targetName[i]);
      }
      if (object.kind !== 0 && (typeof object.kind !== "string" || $root.inference.BatchOutput.Kind[object.kind] !== 0))
        switch (object.kind) {
        case "BATCH_SCATTER_WITH_INPUT_SHAPE":
        case 0:
          message.kind = 0;
          break;
        default:
          if (typeof object.kind === "number" && (object.kind | 0) === object.kind)
            message.kind = object.kind;
        }
      if (object.sourceInput) {
        if (!$Array.isArray(object.sourceInput))
          throw $TypeError(".inference.BatchOutput.sourceInput: array expected");
        message.sourceInput = $Array(object.sourceInput.length);
        for (let i = 0; i < object.sourceInput.length; ++i)
          message.sourceInput[i] = $String(object.sourceInput[i]);
      }
      return message;
    };

    BatchOutput.toObject = function (message, options, _depth) {
      if (!options)
        options = {};
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let object = {};
      if (options.arrays || options.defaults) {
        object.targetName = [];
        object.sourceInput = [];
      }
      if (options.defaults)
        object.kind = options.enums === $String ? "BATCH_SCATTER_WITH_INPUT_SHAPE" : 0;
      if (message.targetName && message.targetName.length) {
        object.targetName = $Array(message.targetName.length);
        for (let j = 0; j < message.targetName.length; ++j)
          object.targetName[j] = message.targetName[j];
      }
      if (message.kind != null && $Object.hasOwnProperty.call(message, "kind"))
        object.kind = options.enums === $String ? $root.inference.BatchOutput.Kind[message.kind] === $undefined ? message.kind : $root.inference.BatchOutput.Kind[message.kind] : message.kind;
      if (message.sourceInput && message.sourceInput.length) {
        object.sourceInput = $Array(message.sourceInput.length);
        for (let j = 0; j < message.sourceInput.length; ++j)
          object.sourceInput[j] = message.sourceInput[j];
      }
      return object;
    };

    BatchOutput.Kind = (function() {
      const valuesById = $Object.create(null), values = $Object.create(valuesById);
      values[valuesById[0] = "BATCH_SCATTER_WITH_INPUT_SHAPE"] = 0;
      return values;
    })();

    return BatchOutput;
  })();

  inference.ModelVersionPolicy = (function() {
    const ModelVersionPolicy = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelVersionPolicy.prototype.latest = null;

    ModelVersionPolicy.prototype.all = null;

    ModelVersionPolicy.prototype.specific = null;

    // OneOf field names bound to virtual getters and setters
    let $oneOfFields;

    $Object.defineProperty(ModelVersionPolicy.prototype, "policyChoice", {
      get: $util.oneOfGetter($oneOfFields = ["latest", "all", "specific"]),
      set: $util.oneOfSetter($oneOfFields)
    });

    ModelVersionPolicy.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.latest != null && $Object.hasOwnProperty.call(message, "latest"))
        $root.inference.ModelVersionPolicy.Latest.encode(message.latest, writer.uint32(/* id 1, wireType 2 =*/10).fork(), _depth + 1).ldelim();
      if (message.all != null && $Object.hasOwnProperty.call(message, "all"))
        $root.inference.ModelVersionPolicy.All.encode(message.all, writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim();
      if (message.specific != null && $Object.hasOwnProperty.call(message, "specific"))
        $root.inference.ModelVersionPolicy.Specific.encode(message.specific, writer.uint32(/* id 3, wireType 2 =*/26).fork(), _depth + 1).ldelim();
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelVersionPolicy.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelVersionPolicy();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            message.latest = $root.inference.ModelVersionPolicy.Latest.decode(reader, reader.size(), $undefined, _depth + 1, message.latest);
            message.policyChoice = "latest";
            continue;
          }
        case 2: {
            if (wireType !== 2)
              break;
            message.all = $root.inference.ModelVersionPolicy.All.decode(reader, reader.size(), $undefined, _depth + 1, message.all);
            message.policyChoice = "all";
            continue;
          }
        case 3: {
            if (wireType !== 2)
              break;
            message.specific = $root.inference.ModelVersionPolicy.Specific.decode(reader, reader.size(), $undefined, _depth + 1, message.specific);
            message.policyChoice = "specific";
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelVersionPolicy.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelVersionPolicy)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelVersionPolicy: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelVersionPolicy();
      if (object.latest != null) {
        if (!$util.isObject(object.latest))
          throw $TypeError(".inference.ModelVersionPolicy.latest: object expected");
        message.latest = $root.inference.ModelVersionPolicy.Latest.fromObject(object.latest, _depth + 1);
      }
      if (object.all != null) {
        if (!$util.isObject(object.all))
          throw $TypeError(".inference.ModelVersionPolicy.all: object expected");
        message.all = $root.inference.ModelVersionPolicy.All.fromObject(object.all, _depth + 1);
      }
      if (object.specific != null) {
        if (!$util.isObject(object.specific))
          throw $TypeError(".inference.ModelVersionPolicy.specific: object expected");
        message.specific = $root.inference.ModelVersionPolicy.Specific.fromObject(object.specific, _depth + 1);
      }
      return message;
    };

    ModelVersionPolicy.toObject = function (message, options, _depth) {
      if (!options)
        options = {};
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let object = {};
      if (message.latest != null && $Object.hasOwnProperty.call(message, "latest")) {
        object.latest = $root.inference.ModelVersionPolicy.Latest.toObject(message.latest, options, _depth + 1);
        if (options.oneofs)
          object.policyChoice = "latest";
      }
      if (message.all != null && $Object.hasOwnProperty.call(message, "all")) {
        object.all = $root.inference.ModelVersionPolicy.All.toObject(message.all, options, _depth + 1);
        if (options.oneofs)
          object.policyChoice = "all";
      }
      if (message.specific != null && $Object.hasOwnProperty.call(message, "specific")) {
        object.specific = $root.inference.ModelVersionPolicy.Specific.toObject(message.specific, options, _depth + 1);
        if (options.oneofs)
          object.policyChoice = "specific";
      }
      return object;
    };

    ModelVersionPolicy.Latest = (function() {
      const Latest = function (properties) {
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      Latest.prototype.numVersions = 0;

      Latest.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.numVersions != null && $Object.hasOwnProperty.call(message, "numVersions") && message.numVersions !== 0)
          writer.uint32(/* id 1, wireType 0 =*/8).uint32(message.numVersions);
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      Latest.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message, value;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.ModelVersionPolicy.Latest();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 0)
                break;
              if (value = reader.uint32())
                message.numVersions = value;
              else
                delete message.numVersions;
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      Latest.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.ModelVersionPolicy.Latest)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.ModelVersionPolicy.Latest: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.ModelVersionPolicy.Latest();
        if (object.numVersions != null)
          if ($Number(object.numVersions) !== 0)
            message.numVersions = object.numVersions >>> 0;
        return message;
      };

      Latest.toObject = function (message, options, _depth) {
        if (!options)
          options = {};
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let object = {};
        if (options.defaults)
          object.numVersions = 0;
        if (message.numVersions != null && $Object.hasOwnProperty.call(message, "numVersions"))
          object.numVersions = message.numVersions;
        return object;
      };

      return Latest;
    })();

    ModelVersionPolicy.All = (function() {
      const All = function (properties) {
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      All.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      All.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.ModelVersionPolicy.All();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          reader.skipType(tag & 7, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      All.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.ModelVersionPolicy.All)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.ModelVersionPolicy.All: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        return new $root.inference.ModelVersionPolicy.All();
      };

      All.toObject = function () {
        return {};
      };

      return All;
    })();

    ModelVersionPolicy.Specific = (function() {
      const Specific = function (properties) {
        this.versions = [];
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      Specific.prototype.versions = $util.emptyArray;

      Specific.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.versions != null && message.versions.length)
          writer.uint32(/* id 1, wireType 2 =*/10).int64s(message.versions);
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      Specific.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.ModelVersionPolicy.Specific();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType === 2) {
                if (!(message.versions && message.versions.length))
                  message.versions = [];
                reader.int64s(message.versions);
                continue;
              }
              if (wireType !== 0)
                break;
              if (!(message.versions && message.versions.length))
                message.versions = [];
              message.versions.push(reader.int64());
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      Specific.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.ModelVersionPolicy.Specific)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.ModelVersionPolicy.Specific: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.ModelVersionPolicy.Specific();
        if (object.versions) {
          if (!$Array.isArray(object.versions))
            throw $TypeError(".inference.ModelVersionPolicy.Specific.versions: array expected");
          message.versions = $Array(object.versions.length);
          for (let i = 0; i < object.versions.length; ++i)
            if ($util.Long)
              message.versions[i] = $util.Long.fromValue(object.versions[i], false);
            else if (typeof object.versions[i] === "string")
              message.versions[i] = $parseInt(object.versions[i], 10);
            else if (typeof object.versions[i] === "number")
              message.versions[i] = object.versions[i];
            else if (typeof object.versions[i] === "object")
              message.versions[i] = new $util.LongBits(object.versions[i].low >>> 0, object.versions[i].high >>> 0).toNumber();
        }
        return message;
      };

      Specific.toObject = function (message, options, _depth) {
        if (!options)
          options = {};
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let object = {};
        if (options.arrays || options.defaults)
          object.versions = [];
        if (message.versions && message.versions.length) {
          object.versions = $Array(message.versions.length);
          for (let j = 0; j < message.versions.length; ++j)
            if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
              object.versions[j] = typeof message.versions[j] === "number" ? $BigInt(message.versions[j]) : $util.Long.fromBits(message.versions[j].low >>> 0, message.versions[j].high >>> 0, false).toBigInt();
            else if (typeof message.versions[j] === "number")
              object.versions[j] = options.longs === $String ? $String(message.versions[j]) : message.versions[j];
            else
              object.versions[j] = options.longs === $String ? $util.Long.prototype.toString.call(message.versions[j]) : options.longs === $Number ? new $util.LongBits(message.versions[j].low >>> 0, message.versions[j].high >>> 0).toNumber() : message.versions[j];
        }
        return object;
      };

      return Specific;
    })();

    return ModelVersionPolicy;
  })();

  inference.ModelOptimizationPolicy = (function() {
    const ModelOptimizationPolicy = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelOptimizationPolicy.prototype.graph = null;

    ModelOptimizationPolicy.prototype.priority = 0;

    ModelOptimizationPolicy.prototype.cuda = null;

    ModelOptimizationPolicy.prototype.executionAccelerators = null;

    ModelOptimizationPolicy.prototype.inputPinnedMemory = null;

    ModelOptimizationPolicy.prototype.outputPinnedMemory = null;

    ModelOptimizationPolicy.prototype.gatherKernelBufferThreshold = 0;

    ModelOptimizationPolicy.prototype.eagerBatching = false;

    ModelOptimizationPolicy.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.graph != null && $Object.hasOwnProperty.call(message, "graph"))
        $root.inference.ModelOptimizationPolicy.Graph.encode(message.graph, writer.uint32(/* id 1, wireType 2 =*/10).fork(), _depth + 1).ldelim();
      if (message.priority != null && $Object.hasOwnProperty.call(message, "priority") && message.priority !== 0)
        writer.uint32(/* id 2, wireType 0 =*/16).int32(message.priority);
      if (message.cuda != null && $Object.hasOwnProperty.call(message, "cuda"))
        $root.inference.ModelOptimizationPolicy.Cuda.encode(message.cuda, writer.uint32(/* id 3, wireType 2 =*/26).fork(), _depth + 1).ldelim();
      if (message.executionAccelerators != null && $Object.hasOwnProperty.call(message, "executionAccelerators"))
        $root.inference.ModelOptimizationPolicy.ExecutionAccelerators.encode(message.executionAccelerators, writer.uint32(/* id 4, wireType 2 =*/34).fork(), _depth + 1).ldelim();
      if (message.inputPinnedMemory != null && $Object.hasOwnProperty.call(message, "inputPinnedMemory"))
        $root.inference.ModelOptimizationPolicy.PinnedMemoryBuffer.encode(message.inputPinnedMemory, writer.uint32(/* id 5, wireType 2 =*/42).fork(), _depth + 1).ldelim();
      if (message.outputPinnedMemory != null && $Object.hasOwnProperty.call(message, "outputPinnedMemory"))
        $root.inference.ModelOptimizationPolicy.PinnedMemoryBuffer.encode(message.outputPinnedMemory, writer.uint32(/* id 6, wireType 2 =*/50).fork(), _depth + 1).ldelim();
      if (message.gatherKernelBufferThreshold != null && $Object.hasOwnProperty.call(message, "gatherKernelBufferThreshold") && message.gatherKernelBufferThreshold !== 0)
        writer.uint32(/* id 7, wireType 0 =*/56).uint32(message.gatherKernelBufferThreshold);
      if (message.eagerBatching != null && $Object.hasOwnProperty.call(message, "eagerBatching") && message.eagerBatching !== false)
        writer.uint32(/* id 8, wireType 0 =*/64).bool(message.eagerBatching);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelOptimizationPolicy.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelOptimizationPolicy();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            message.graph = $root.inference.ModelOptimizationPolicy.Graph.decode(reader, reader.size(), $undefined, _depth + 1, message.graph);
            continue;
          }
        case 2: {
            if (wireType !== 0)
              break;
            if (value = reader.int32())
              message.priority = value;
            else
              delete message.priority;
            continue;
          }
        case 3: {
            if (wireType !== 2)
              break;
            message.cuda = $root.inference.ModelOptimizationPolicy.Cuda.decode(reader, reader.size(), $undefined, _depth + 1, message.cuda);
            continue;
          }
        case 4: {
            if (wireType !== 2)
              break;
            message.executionAccelerators = $root.inference.ModelOptimizationPolicy.ExecutionAccelerators.decode(reader, reader.size(), $undefined, _depth + 1, message.executionAccelerators);
            continue;
          }
        case 5: {
            if (wireType !== 2)
              break;
            message.inputPinnedMemory = $root.inference.ModelOptimizationPolicy.PinnedMemoryBuffer.decode(reader, reader.size(), $undefined, _depth + 1, message.inputPinnedMemory);
            continue;
          }
        case 6: {
            if (wireType !== 2)
              break;
            message.outputPinnedMemory = $root.inference.ModelOptimizationPolicy.PinnedMemoryBuffer.decode(reader, reader.size(), $undefined, _depth + 1, message.outputPinnedMemory);
            continue;
          }
        case 7: {
            if (wireType !== 0)
              break;
            if (value = reader.uint32())
              message.gatherKernelBufferThreshold = value;
            else
              delete message.gatherKernelBufferThreshold;
            continue;
          }
        case 8: {
            if (wireType !== 0)
              break;
            if (value = reader.bool())
              message.eagerBatching = value;
            else
              delete message.eagerBatching;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelOptimizationPolicy.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelOptimizationPolicy)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelOptimizationPolicy: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelOptimizationPolicy();
      if (object.graph != null) {
        if (!$util.isObject(object.graph))
          throw $TypeError(".inference.ModelOptimizationPolicy.graph: object expected");
        message.graph = $root.inference.ModelOptimizationPolicy.Graph.fromObject(object.graph, _depth + 1);
      }
      if (object.priority !== 0 && (typeof object.priority !== "string" || $root.inference.ModelOptimizationPolicy.ModelPriority[object.priority] !== 0))
        switch (object.priority) {
        case "PRIORITY_DEFAULT":
        case 0:
          message.priority = 0;
          break;
        case "PRIORITY_MAX":
        case 1:
          message.priority = 1;
          break;
        case "PRIORITY_MIN":
        case 2:
          message.priority = 2;
          break;
        default:
          if (typeof object.priority === "number" && (object.priority | 0) === object.priority)
            message.priority = object.priority;
        }
      if (object.cuda != null) {
        if (!$util.isObject(object.cuda))
          throw $TypeError(".inference.ModelOptimizationPolicy.cuda: object expected");
        message.cuda = $root.inference.ModelOptimizationPolicy.Cuda.fromObject(object.cuda, _depth + 1);
      }
      if (object.executionAccelerators != null) {
        if (!$util.isObject(object.executionAccelerators))
          throw $TypeError(".inference.ModelOptimizationPolicy.executionAccelerators: object expected");
        message.executionAccelerators = $root.inference.ModelOptimizationPolicy.ExecutionAccelerators.fromObject(object.executionAccelerators, _depth + 1);
      }
      if (object.inputPinnedMemory != null) {
        if (!$util.isObject(object.inputPinnedMemory))
          throw $TypeError(".inference.ModelOptimizationPolicy.inputPinnedMemory: object expected");
        message.inputPinnedMemory = $root.inference.ModelOptimizationPolicy.PinnedMemoryBuffer.fromObject(object.inputPinnedMemory, _depth + 1);
      }
      if (object.outputPinnedMemory != null) {
        if (!$util.isObject(object.outputPinnedMemory))
          throw $TypeError(".inference.ModelOptimizationPolicy.outputPinnedMemory: object expected");
        message.outputPinnedMemory = $root.inference.ModelOptimizationPolicy.PinnedMemoryBuffer.fromObject(object.outputPinnedMemory, _depth + 1);
      }
      if (object.gatherKernelBufferThreshold != null)
        if ($Number(object.gatherKernelBufferThreshold) !== 0)
          message.gatherKernelBufferThreshold = object.gatherKernelBufferThreshold >>> 0;
      if (object.eagerBatching != null)
        if (object.eagerBatching)
          message.eagerBatching = $Boolean(object.eagerBatching);
      return message;
    };

    ModelOptimizationPolicy.toObject = function (message, options, _depth) {
      if (!options)
        options = {};
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let object = {};
      if (options.defaults) {
        object.graph = null;
        object.priority = options.enums === $String ? "PRIORITY_DEFAULT" : 0;
        object.cuda = null;
        object.executionAccelerators = null;
        object.inputPinnedMemory = null;
        object.outputPinnedMemory = null;
        object.gatherKernelBufferThreshold = 0;
        object.eagerBatching = false;
      }
      if (message.graph != null && $Object.hasOwnProperty.call(message, "graph"))
        object.graph = $root.inference.ModelOptimizationPolicy.Graph.toObject(message.graph, options, _depth + 1);
      if (message.priority != null && $Object.hasOwnProperty.call(message, "priority"))
        object.priority = options.enums === $String ? $root.inference.ModelOptimizationPolicy.ModelPriority[message.priority] === $undefined ? message.priority : $root.inference.ModelOptimizationPolicy.ModelPriority[message.priority] : message.priority;
      if (message.cuda != null && $Object.hasOwnProperty.call(message, "cuda"))
        object.cuda = $root.inference.ModelOptimizationPolicy.Cuda.toObject(message.cuda, options, _depth + 1);
      if (message.executionAccelerators != null && $Object.hasOwnProperty.call(message, "executionAccelerators"))
        object.executionAccelerators = $root.inference.ModelOptimizationPolicy.ExecutionAccelerators.toObject(message.executionAccelerators, options, _depth + 1);
      if (message.inputPinnedMemory != null && $Object.hasOwnProperty.call(message, "inputPinnedMemory"))
        object.inputPinnedMemory = $root.inference.ModelOptimizationPolicy.PinnedMemoryBuffer.toObject(message.inputPinnedMemory, options, _depth + 1);
      if (message.outputPinnedMemory != null && $Object.hasOwnProperty.call(message, "outputPinnedMemory"))
        object.outputPinnedMemory = $root.inference.ModelOptimizationPolicy.PinnedMemoryBuffer.toObject(message.outputPinnedMemory, options, _depth + 1);
      if (message.gatherKernelBufferThreshold != null && $Object.hasOwnProperty.call(message, "gatherKernelBufferThreshold"))
        object.gatherKernelBufferThreshold = message.gatherKernelBufferThreshold;
      if (message.eagerBatching != null && $Object.hasOwnProperty.call(message, "eagerBatching"))
        object.eagerBatching = message.eagerBatching;
      return object;
    };

    ModelOptimizationPolicy.ModelPriority = (function() {
      const valuesById = $Object.create(null), values = $Object.create(valuesById);
      values[valuesById[0] = "PRIORITY_DEFAULT"] = 0;
      values[valuesById[1] = "PRIORITY_MAX"] = 1;
      values[valuesById[2] = "PRIORITY_MIN"] = 2;
      return values;
    })();

    ModelOptimizationPolicy.Graph = (function() {
      const Graph = function (properties) {
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      Graph.prototype.level = 0;

      Graph.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.level != null && $Object.hasOwnProperty.call(message, "level") && message.level !== 0)
          writer.uint32(/* id 1, wireType 0 =*/8).int32(message.level);
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      Graph.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message, value;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.ModelOptimizationPolicy.Graph();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 0)
                break;
              if (value = reader.int32())
                message.level = value;
              else
                delete message.level;
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      Graph.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.ModelOptimizationPolicy.Graph)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.ModelOptimizationPolicy.Graph: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.ModelOptimizationPolicy.Graph();
        if (object.level != null)
          if ($Number(object.level) !== 0)
            message.level = object.level | 0;
        return message;
      };

      Graph.toObject = function (message, options, _depth) {
        if (!options)
          options = {};
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let object = {};
        if (options.defaults)
          object.level = 0;
        if (message.level != null && $Object.hasOwnProperty.call(message, "level"))
          object.level = message.level;
        return object;
      };

      return Graph;
    })();

    ModelOptimizationPolicy.Cuda = (function() {
      const Cuda = function (properties) {
        this.graphSpec = [];
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      Cuda.prototype.graphs = false;

      Cuda.prototype.busyWaitEvents = false;

      Cuda.prototype.graphSpec = $util.emptyArray;

      Cuda.prototype.outputCopyStream = false;

      Cuda.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.graphs != null && $Object.hasOwnProperty.call(message, "graphs") && message.graphs !== false)
          writer.uint32(/* id 1, wireType 0 =*/8).bool(message.graphs);
        if (message.busyWaitEvents != null && $Object.hasOwnProperty.call(message, "busyWaitEvents") && message.busyWaitEvents !== false)
          writer.uint32(/* id 2, wireType 0 =*/16).bool(message.busyWaitEvents);
        if (message.graphSpec != null && message.graphSpec.length)
          for (let i = 0; i < message.graphSpec.length; ++i)
            $root.inference.ModelOptimizationPolicy.Cuda.GraphSpec.encode(message.graphSpec[i], writer.uint32(/* id 3, wireType 2 =*/26).fork(), _depth + 1).ldelim();
        if (message.outputCopyStream != null && $Object.hasOwnProperty.call(message, "outputCopyStream") && message.outputCopyStream !== false)
          writer.uint32(/* id 4, wireType 0 =*/32).bool(message.outputCopyStream);
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      Cuda.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message, value;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.ModelOptimizationPolicy.Cuda();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 0)
                break;
              if (value = reader.bool())
                message.graphs = value;
              else
                delete message.graphs;
              continue;
            }
          case 2: {
              if (wireType !== 0)
                break;
              if (value = reader.bool())
                message.busyWaitEvents = value;
              else
                delete message.busyWaitEvents;
              continue;
            }
          case 3: {
              if (wireType !== 2)
                break;
              if (!(message.graphSpec && message.graphSpec.length))
                message.graphSpec = [];
              message.graphSpec.push($root.inference.ModelOptimizationPolicy.Cuda.GraphSpec.decode(reader, reader.size(), $undefined, _depth + 1));
              continue;
            }
          case 4: {
              if (wireType !== 0)
                break;
              if (value = reader.bool())
                message.outputCopyStream = value;
              else
                delete message.outputCopyStream;
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      Cuda.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.ModelOptimizationPolicy.Cuda)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.ModelOptimizationPolicy.Cuda: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.ModelOptimizationPolicy.Cuda();
        if (object.graphs != null)
          if (object.graphs)
            message.graphs = $Boolean(object.graphs);
        if (object.busyWaitEvents != null)
          if (object.busyWaitEvents)
            message.busyWaitEvents = $Boolean(object.busyWaitEvents);
        if (object.graphSpec) {
          if (!$Array.isArray(object.graphSpec))
            throw $TypeError(".inference.ModelOptimizationPolicy.Cuda.graphSpec: array expected");
          message.graphSpec = $Array(object.graphSpec.length);
          for (let i = 0; i < object.graphSpec.length; ++i) {
            if (!$util.isObject(object.graphSpec[i]))
              throw $TypeError(".inference.ModelOptimizationPolicy.Cuda.graphSpec: object expected");
            message.graphSpec[i] = $root.inference.ModelOptimizationPolicy.Cuda.GraphSpec.fromObject(object.graphSpec[i], _depth + 1);
          }
        }
        if (object.outputCopyStream != null)
          if (object.outputCopyStream)
            message.outputCopyStream = $Boolean(object.outputCopyStream);
        return message;
      };

      Cuda.toObject = function (message, options, _depth) {
        if (!options)
          options = {};
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let object = {};
        if (options.arrays || options.defaults)
          object.graphSpec = [];
        if (options.defaults) {
          object.graphs = false;
          object.busyWaitEvents = false;
          object.outputCopyStream = false;
        }
        if (message.graphs != null && $Object.hasOwnProperty.call(message, "graphs"))
          object.graphs = message.graphs;
        if (message.busyWaitEvents != null && $Object.hasOwnProperty.call(message, "busyWaitEvents"))
          object.busyWaitEvents = message.busyWaitEvents;
        if (message.graphSpec && message.graphSpec.length) {
          object.graphSpec = $Array(message.graphSpec.length);
          for (let j = 0; j < message.graphSpec.length; ++j)
            object.graphSpec[j] = $root.inference.ModelOptimizationPolicy.Cuda.GraphSpec.toObject(message.graphSpec[j], options, _depth + 1);
        }
        if (message.outputCopyStream != null && $Object.hasOwnProperty.call(message, "outputCopyStream"))
          object.outputCopyStream = message.outputCopyStream;
        return object;
      };

      Cuda.GraphSpec = (function() {
        const GraphSpec = function (properties) {
          this.input = {};
          if (properties)
            for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
              if (properties[keys[i]] != null && keys[i] !== "__proto__")
                this[keys[i]] = properties[keys[i]];
        };

        GraphSpec.prototype.batchSize = 0;

        GraphSpec.prototype.input = $util.emptyObject;

        GraphSpec.prototype.graphLowerBound = null;

        GraphSpec.encode = function (message, writer, _depth) {
          if (!writer)
            writer = $Writer.create();
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          if (message.batchSize != null && $Object.hasOwnProperty.call(message, "batchSize") && message.batchSize !== 0)
            writer.uint32(/* id 1, wireType 0 =*/8).int32(message.batchSize);
          if (message.input != null && $Object.hasOwnProperty.call(message, "input"))
            for (let keys = $Object.keys(message.input), i = 0; i < keys.length; ++i) {
              writer.uint32(/* id 2, wireType 2 =*/18).fork().uint32(/* id 1, wireType 2 =*/10).string(keys[i]);
              $root.inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape.encode(message.input[keys[i]], writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim().ldelim();
            }
          if (message.graphLowerBound != null && $Object.hasOwnProperty.call(message, "graphLowerBound"))
            $root.inference.ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound.encode(message.graphLowerBound, writer.uint32(/* id 3, wireType 2 =*/26).fork(), _depth + 1).ldelim();
          if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
            for (let i = 0; i < message.$unknowns.length; ++i)
              writer.raw(message.$unknowns[i]);
          return writer;
        };

        GraphSpec.decode = function (reader, length, _end, _depth, _target) {
          if (!(reader instanceof $Reader))
            reader = $Reader.create(reader);
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $Reader.recursionLimit)
            throw $Error("max depth exceeded");
          let end, message, key, value;
          if (length === $undefined)
            end = reader.len;
          else {
            end = reader.pos + length;
            if (end > reader.len)
              throw $RangeError("index out of range");
            length = reader.len;
            reader.len = end;
          }
          message = _target || new $root.inference.ModelOptimizationPolicy.Cuda.GraphSpec();
          while (reader.pos < end) {
            let start = reader.pos;
            let tag = reader.tag();
            if (tag === _end) {
              _end = $undefined;
              break;
            }
            let wireType = tag & 7;
            switch (tag >>>= 3) {
            case 1: {
                if (wireType !== 0)
                  break;
                if (value = reader.int32())
                  message.batchSize = value;
                else
                  delete message.batchSize;
                continue;
              }
            case 2: {
                if (wireType !== 2)
                  break;
                if (message.input === $util.emptyObject)
                  message.input = {};
                let end2 = reader.size() + reader.pos;
                if (end2 > reader.len)
                  throw $RangeError("index out of range");
                reader.len = end2;
                key = "";
                value = null;
                while (reader.pos < end2) {
                  let tag2 = reader.tag();
                  wireType = tag2 & 7;
                  switch (tag2 >>>= 3) {
                  case 1:
                    if (wireType !== 2)
                      break;
                    key = reader.stringVerify();
                    continue;
                  case 2:
                    if (wireType !== 2)
                      break;
                    value = $root.inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape.decode(reader, reader.size(), $undefined, _depth + 1, value);
                    continue;
                  }
                  reader.skipType(wireType, _depth, tag2);
                }
                if (reader.pos !== end2)
                  throw $RangeError("index out of range");
                reader.len = end;
                if (key === "__proto__")
                  $util.makeProp(message.input, key);
                message.input[key] = value || new $root.inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape();
                continue;
              }
            case 3: {
                if (wireType !== 2)
                  break;
                message.graphLowerBound = $root.inference.ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound.decode(reader, reader.size(), $undefined, _depth + 1, message.graphLowerBound);
                continue;
              }
            }
            reader.skipType(wireType, _depth, tag);
            if (!reader.discardUnknown) {
              $util.makeProp(message, "$unknowns", false);
              (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
            }
          }
          if (length !== $undefined) {
            if (reader.pos !== end)
              throw $RangeError("index out of range");
            reader.len = length;
          }
          if (_end !== $undefined)
            throw $Error("missing end group");
          return message;
        };

        GraphSpec.fromObject = function (object, _depth) {
          if (object instanceof $root.inference.ModelOptimizationPolicy.Cuda.GraphSpec)
            return object;
          if (!$util.isObject(object))
            throw $TypeError(".inference.ModelOptimizationPolicy.Cuda.GraphSpec: object expected");
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          let message = new $root.inference.ModelOptimizationPolicy.Cuda.GraphSpec();
          if (object.batchSize != null)
            if ($Number(object.batchSize) !== 0)
              message.batchSize = object.batchSize | 0;
          if (object.input) {
            if (!$util.isObject(object.input))
              throw $TypeError(".inference.ModelOptimizationPolicy.Cuda.GraphSpec.input: object expected");
            message.input = {};
            for (let keys = $Object.keys(object.input), i = 0; i < keys.length; ++i) {
              if (keys[i] === "__proto__")
                $util.makeProp(message.input, keys[i]);
              if (!$util.isObject(object.input[keys[i]]))
                throw $TypeError(".inference.ModelOptimizationPolicy.Cuda.GraphSpec.input: object expected");
              message.input[keys[i]] = $root.inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape.fromObject(object.input[keys[i]], _depth + 1);
            }
          }
          if (object.graphLowerBound != null) {
            if (!$util.isObject(object.graphLowerBound))
              throw $TypeError(".inference.ModelOptimizationPolicy.Cuda.GraphSpec.graphLowerBound: object expected");
            message.graphLowerBound = $root.inference.ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound.fromObject(object.graphLowerBound, _depth + 1);
          }
          return message;
        };

        GraphSpec.toObject = function (message, options, _depth) {
          if (!options)
            options = {};
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          let object = {};
          if (options.objects || options.defaults)
            object.input = {};
          if (options.defaults) {
            object.batchSize = 0;
            object.graphLowerBound = null;
          }
          if (message.batchSize != null && $Object.hasOwnProperty.call(message, "batchSize"))
            object.batchSize = message.batchSize;
          let keys2;
          if (message.input && (keys2 = $Object.keys(message.input)).length) {
            object.input = {};
            for (let j = 0; j < keys2.length; ++j) {
              if (keys2[j] === "__proto__")
                $util.makeProp(object.input, keys2[j]);
              object.input[keys2[j]] = $root.inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape.toObject(message.input[keys2[j]], options, _depth + 1);
            }
          }
          if (message.graphLowerBound != null && $Object.hasOwnProperty.call(message, "graphLowerBound"))
            object.graphLowerBound = $root.inference.ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound.toObject(message.graphLowerBound, options, _depth + 1);
          return object;
        };

        GraphSpec.Shape = (function() {
          const Shape = function (properties) {
            this.dim = [];
            if (properties)
              for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                if (properties[keys[i]] != null && keys[i] !== "__proto__")
                  this[keys[i]] = properties[keys[i]];
          };

          Shape.prototype.dim = $util.emptyArray;

          Shape.encode = function (message, writer, _depth) {
            if (!writer)
              writer = $Writer.create();
            if (_depth === $undefined)
              _depth = 0;
            if (_depth > $util.recursionLimit)
              throw $Error("max depth exceeded");
            if (message.dim != null && message.dim.length)
              writer.uint32(/* id 1, wireType 2 =*/10).int64s(message.dim);
            if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
              for (let i = 0; i < message.$unknowns.length; ++i)
                writer.raw(message.$unknowns[i]);
            return writer;
          };

          Shape.decode = function (reader, length, _end, _depth, _target) {
            if (!(reader instanceof $Reader))
              reader = $Reader.create(reader);
            if (_depth === $undefined)
              _depth = 0;
            if (_depth > $Reader.recursionLimit)
              throw $Error("max depth exceeded");
            let end, message;
            if (length === $undefined)
              end = reader.len;
            else {
              end = reader.pos + length;
              if (end > reader.len)
                throw $RangeError("index out of range");
              length = reader.len;
              reader.len = end;
            }
            message = _target || new $root.inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape();
            while (reader.pos < end) {
              let start = reader.pos;
              let tag = reader.tag();
              if (tag === _end) {
                _end = $undefined;
                break;
              }
              let wireType = tag & 7;
              switch (tag >>>= 3) {
              case 1: {
                  if (wireType === 2) {
                    if (!(message.dim && message.dim.length))
                      message.dim = [];
                    reader.int64s(message.dim);
                    continue;
                  }
                  if (wireType !== 0)
                    break;
                  if (!(message.dim && message.dim.length))
                    message.dim = [];
                  message.dim.push(reader.int64());
                  continue;
                }
              }
              reader.skipType(wireType, _depth, tag);
              if (!reader.discardUnknown) {
                $util.makeProp(message, "$unknowns", false);
                (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
              }
            }
            if (length !== $undefined) {
              if (reader.pos !== end)
                throw $RangeError("index out of range");
              reader.len = length;
            }
            if (_end !== $undefined)
              throw $Error("missing end group");
            return message;
          };

          Shape.fromObject = function (object, _depth) {
            if (object instanceof $root.inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape)
              return object;
            if (!$util.isObject(object))
              throw $TypeError(".inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape: object expected");
            if (_depth === $undefined)
              _depth = 0;
            if (_depth > $util.recursionLimit)
              throw $Error("max depth exceeded");
            let message = new $root.inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape();
            if (object.dim) {
              if (!$Array.isArray(object.dim))
                throw $TypeError(".inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape.dim: array expected");
              message.dim = $Array(object.dim.length);
              for (let i = 0; i < object.dim.length; ++i)
                if ($util.Long)
                  message.dim[i] = $util.Long.fromValue(object.dim[i], false);
                else if (typeof object.dim[i] === "string")
                  message.dim[i] = $parseInt(object.dim[i], 10);
                else if (typeof object.dim[i] === "number")
                  message.dim[i] = object.dim[i];
                else if (typeof object.dim[i] === "object")
                  message.dim[i] = new $util.LongBits(object.dim[i].low >>> 0, object.dim[i].high >>> 0).toNumber();
            }
            return message;
          };

          Shape.toObject = function (message, options, _depth) {
            if (!options)
              options = {};
            if (_depth === $undefined)
              _depth = 0;
            if (_depth > $util.recursionLimit)
              throw $Error("max depth exceeded");
            let object = {};
            if (options.arrays || options.defaults)
              object.dim = [];
            if (message.dim && message.dim.length) {
              object.dim = $Array(message.dim.length);
              for (let j = 0; j < message.dim.length; ++j)
                if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
                  object.dim[j] = typeof message.dim[j] === "number" ? $BigInt(message.dim[j]) : $util.Long.fromBits(message.dim[j].low >>> 0, message.dim[j].high >>> 0, false).toBigInt();
                else if (typeof message.dim[j] === "number")
                  object.dim[j] = options.longs === $String ? $String(message.dim[j]) : message.dim[j];
                else
                  object.dim[j] = options.longs === $String ? $util.Long.prototype.toString.call(message.dim[j]) : options.longs === $Number ? new $util.LongBits(message.dim[j].low >>> 0, message.dim[j].high >>> 0).toNumber() : message.dim[j];
            }
            return object;
          };

          return Shape;
        })();

        GraphSpec.LowerBound = (function() {
          const LowerBound = function (properties) {
            this.input = {};
            if (properties)
              for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                if (properties[keys[i]] != null && keys[i] !== "__proto__")
                  this[keys[i]] = properties[keys[i]];
          };

          LowerBound.prototype.batchSize = 0;

          LowerBound.prototype.input = $util.emptyObject;

          LowerBound.encode = function (message, writer, _depth) {
            if (!writer)
              writer = $Writer.create();
            if (_depth === $undefined)
              _depth = 0;
            if (_depth > $util.recursionLimit)
              throw $Error("max depth exceeded");
            if (message.batchSize != null && $Object.hasOwnProperty.call(message, "batchSize") && message.batchSize !== 0)
              writer.uint32(/* id 1, wireType 0 =*/8).int32(message.batchSize);
            if (message.input != null && $Object.hasOwnProperty.call(message, "input"))
              for (let keys = $Object.keys(message.input), i = 0; i < keys.length; ++i) {
                writer.uint32(/* id 2, wireType 2 =*/18).fork().uint32(/* id 1, wireType 2 =*/10).string(keys[i]);
                $root.inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape.encode(message.input[keys[i]], writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim().ldelim();
              }
            if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
              for (let i = 0; i < message.$unknowns.length; ++i)
                writer.raw(message.$unknowns[i]);
            return writer;
          };

          LowerBound.decode = function (reader, length, _end, _depth, _target) {
            if (!(reader instanceof $Reader))
              reader = $Reader.create(reader);
            if (_depth === $undefined)
              _depth = 0;
            if (_depth > $Reader.recursionLimit)
              throw $Error("max depth exceeded");
            let end, message, key, value;
            if (length === $undefined)
              end = reader.len;
            else {
              end = reader.pos + length;
              if (end > reader.len)
                throw $RangeError("index out of range");
              length = reader.len;
              reader.len = end;
            }
            message = _target || new $root.inference.ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound();
            while (reader.pos < end) {
              let start = reader.pos;
              let tag = reader.tag();
              if (tag === _end) {
                _end = $undefined;
                break;
              }
              let wireType = tag & 7;
              switch (tag >>>= 3) {
              case 1: {
                  if (wireType !== 0)
                    break;
                  if (value = reader.int32())
                    message.batchSize = value;
                  else
                    delete message.batchSize;
                  continue;
                }
              case 2: {
                  if (wireType !== 2)
                    break;
                  if (message.input === $util.emptyObject)
                    message.input = {};
                  let end2 = reader.size() + reader.pos;
                  if (end2 > reader.len)
                    throw $RangeError("index out of range");
                  reader.len = end2;
                  key = "";
                  value = null;
                  while (reader.pos < end2) {
                    let tag2 = reader.tag();
                    wireType = tag2 & 7;
                    switch (tag2 >>>= 3) {
                    case 1:
                      if (wireType !== 2)
                        break;
                      key = reader.stringVerify();
                      continue;
                    case 2:
                      if (wireType !== 2)
                        break;
                      value = $root.inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape.decode(reader, reader.size(), $undefined, _depth + 1, value);
                      continue;
                    }
                    reader.skipType(wireType, _depth, tag2);
                  }
                  if (reader.pos !== end2)
                    throw $RangeError("index out of range");
                  reader.len = end;
                  if (key === "__proto__")
                    $util.makeProp(message.input, key);
                  message.input[key] = value || new $root.inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape();
                  continue;
                }
              }
              reader.skipType(wireType, _depth, tag);
              if (!reader.discardUnknown) {
                $util.makeProp(message, "$unknowns", false);
                (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
              }
            }
            if (length !== $undefined) {
              if (reader.pos !== end)
                throw $RangeError("index out of range");
              reader.len = length;
            }
            if (_end !== $undefined)
              throw $Error("missing end group");
            return message;
          };

          LowerBound.fromObject = function (object, _depth) {
            if (object instanceof $root.inference.ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound)
              return object;
            if (!$util.isObject(object))
              throw $TypeError(".inference.ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound: object expected");
            if (_depth === $undefined)
              _depth = 0;
            if (_depth > $util.recursionLimit)
              throw $Error("max depth exceeded");
            let message = new $root.inference.ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound();
            if (object.batchSize != null)
              if ($Number(object.batchSize) !== 0)
                message.batchSize = object.batchSize | 0;
            if (object.input) {
              if (!$util.isObject(object.input))
                throw $TypeError(".inference.ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound.input: object expected");
              message.input = {};
              for (let keys = $Object.keys(object.input), i = 0; i < keys.length; ++i) {
                if (keys[i] === "__proto__")
                  $util.makeProp(message.input, keys[i]);
                if (!$util.isObject(object.input[keys[i]]))
                  throw $TypeError(".inference.ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound.input: object expected");
                message.input[keys[i]] = $root.inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape.fromObject(object.input[keys[i]], _depth + 1);
              }
            }
            return message;
          };

          LowerBound.toObject = function (message, options, _depth) {
            if (!options)
              options = {};
            if (_depth === $undefined)
              _depth = 0;
            if (_depth > $util.recursionLimit)
              throw $Error("max depth exceeded");
            let object = {};
            if (options.objects || options.defaults)
              object.input = {};
            if (options.defaults)
              object.batchSize = 0;
            if (message.batchSize != null && $Object.hasOwnProperty.call(message, "batchSize"))
              object.batchSize = message.batchSize;
            let keys2;
            if (message.input && (keys2 = $Object.keys(message.input)).length) {
              object.input = {};
              for (let j = 0; j < keys2.length; ++j) {
                if (keys2[j] === "__proto__")
                  $util.makeProp(object.input, keys2[j]);
                object.input[keys2[j]] = $root.inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape.toObject(message.input[keys2[j]], options, _depth + 1);
              }
            }
            return object;
          };

          return LowerBound;
        })();

        return GraphSpec;
      })();

      return Cuda;
    })();

    ModelOptimizationPolicy.ExecutionAccelerators = (function() {
      const ExecutionAccelerators = function (properties) {
        this.gpuExecutionAccelerator = [];
        this.cpuExecutionAccelerator = [];
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      ExecutionAccelerators.prototype.gpuExecutionAccelerator = $util.emptyArray;

      ExecutionAccelerators.prototype.cpuExecutionAccelerator = $util.emptyArray;

      ExecutionAccelerators.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.gpuExecutionAccelerator != null && message.gpuExecutionAccelerator.length)
          for (let i = 0; i < message.gpuExecutionAccelerator.length; ++i)
            $root.inference.ModelOptimizationPolicy.ExecutionAccelerators.Accelerator.encode(message.gpuExecutionAccelerator[i], writer.uint32(/* id 1, wireType 2 =*/10).fork(), _depth + 1).ldelim();
        if (message.cpuExecutionAccelerator != null && message.cpuExecutionAccelerator.length)
          for (let i = 0; i < message.cpuExecutionAccelerator.length; ++i)
            $root.inference.ModelOptimizationPolicy.ExecutionAccelerators.Accelerator.encode(message.cpuExecutionAccelerator[i], writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim();
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      ExecutionAccelerators.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.ModelOptimizationPolicy.ExecutionAccelerators();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 2)
                break;
              if (!(message.gpuExecutionAccelerator && message.gpuExecutionAccelerator.length))
                message.gpuExecutionAccelerator = [];
              message.gpuExecutionAccelerator.push($root.inference.ModelOptimizationPolicy.ExecutionAccelerators.Accelerator.decode(reader, reader.size(), $undefined, _depth + 1));
              continue;
            }
          case 2: {
              if (wireType !== 2)
                break;
              if (!(message.cpuExecutionAccelerator && message.cpuExecutionAccelerator.length))
                message.cpuExecutionAccelerator = [];
              message.cpuExecutionAccelerator.push($root.inference.ModelOptimizationPolicy.ExecutionAccelerators.Accelerator.decode(reader, reader.size(), $undefined, _depth + 1));
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      ExecutionAccelerators.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.ModelOptimizationPolicy.ExecutionAccelerators)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.ModelOptimizationPolicy.ExecutionAccelerators: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.ModelOptimizationPolicy.ExecutionAccelerators();
        if (object.gpuExecutionAccelerator) {
          if (!$Array.isArray(object.gpuExecutionAccelerator))
            throw $TypeError(".inference.ModelOptimizationPolicy.ExecutionAccelerators.gpuExecutionAccelerator: array expected");
          message.gpuExecutionAccelerator = $Array(object.gpuExecutionAccelerator.length);
          for (let i = 0; i < object.gpuExecutionAccelerator.length; ++i) {
            if (!$util.isObject(object.gpuExecutionAccelerator[i]))
              throw $TypeError(".inference.ModelOptimizationPolicy.ExecutionAccelerators.gpuExecutionAccelerator: object expected");
            message.gpuExecutionAccelerator[i] = $root.inference.ModelOptimizationPolicy.ExecutionAccelerators.Accelerator.fromObject(object.gpuExecutionAccelerator[i], _depth + 1);
          }
        }
        if (object.cpuExecutionAccelerator) {
          if (!$Array.isArray(object.cpuExecutionAccelerator))
            throw $TypeError(".inference.ModelOptimizationPolicy.ExecutionAccelerators.cpuExecutionAccelerator: array expected");
          message.cpuExecutionAccelerator = $Array(object.cpuExecutionAccelerator.length);
          for (let i = 0; i < object.cpuExecutionAccelerator.length; ++i) {
            if (!$util.isObject(object.cpuExecutionAccelerator[i]))
              throw $TypeError(".inference.ModelOptimizationPolicy.ExecutionAccelerators.cpuExecutionAccelerator: object expected");
            message.cpuExecutionAccelerator[i] = $root.inference.ModelOptimizationPolicy.ExecutionAccelerators.Accelerator.fromObject(object.cpuExecutionAccelerator[i], _depth + 1);
          }
        }
        return message;
      };

      ExecutionAccelerators.toObject = function (message, options, _depth) {
        if (!options)
          options = {};
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let object = {};
        if (options.arrays || options.defaults) {
          object.gpuExecutionAccelerator = [];
          object.cpuExecutionAccelerator = [];
        }
        if (message.gpuExecutionAccelerator && message.gpuExecutionAccelerator.length) {
          object.gpuExecutionAccelerator = $Array(message.gpuExecutionAccelerator.length);
          for (let j = 0; j < message.gpuExecutionAccelerator.length; ++j)
            object.gpuExecutionAccelerator[j] = $root.inference.ModelOptimizationPolicy.ExecutionAccelerators.Accelerator.toObject(message.gpuExecutionAccelerator[j], options, _depth + 1);
        }
        if (message.cpuExecutionAccelerator && message.cpuExecutionAccelerator.length) {
          object.cpuExecutionAccelerator = $Array(message.cpuExecutionAccelerator.length);
          for (let j = 0; j < message.cpuExecutionAccelerator.length; ++j)
            object.cpuExecutionAccelerator[j] = $root.inference.ModelOptimizationPolicy.ExecutionAccelerators.Accelerator.toObject(message.cpuExecutionAccelerator[j], options, _depth + 1);
        }
        return object;
      };

      ExecutionAccelerators.Accelerator = (function() {
        const Accelerator = function (properties) {
          this.parameters = {};
          if (properties)
            for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
              if (properties[keys[i]] != null && keys[i] !== "__proto__")
                this[keys[i]] = properties[keys[i]];
        };

        Accelerator.prototype.name = "";

        Accelerator.prototype.parameters = $util.emptyObject;

        Accelerator.encode = function (message, writer, _depth) {
          if (!writer)
            writer = $Writer.create();
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
            writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
          if (message.parameters != null && $Object.hasOwnProperty.call(message, "parameters"))
            for (let keys = $Object.keys(message.parameters), i = 0; i < keys.length; ++i)
              writer.uint32(/* id 2, wireType 2 =*/18).fork().uint32(/* id 1, wireType 2 =*/10).string(keys[i]).uint32(/* id 2, wireType 2 =*/18).string(message.parameters[keys[i]]).ldelim();
          if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
            for (let i = 0; i < message.$unknowns.length; ++i)
              writer.raw(message.$unknowns[i]);
          return writer;
        };

        Accelerator.decode = function (reader, length, _end, _depth, _target) {
          if (!(reader instanceof $Reader))
            reader = $Reader.create(reader);
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $Reader.recursionLimit)
            throw $Error("max depth exceeded");
          let end, message, key, value;
          if (length === $undefined)
            end = reader.len;
          else {
            end = reader.pos + length;
            if (end > reader.len)
              throw $RangeError("index out of range");
            length = reader.len;
            reader.len = end;
          }
          message = _target || new $root.inference.ModelOptimizationPolicy.ExecutionAccelerators.Accelerator();
          while (reader.pos < end) {
            let start = reader.pos;
            let tag = reader.tag();
            if (tag === _end) {
              _end = $undefined;
              break;
            }
            let wireType = tag & 7;
            switch (tag >>>= 3) {
            case 1: {
                if (wireType !== 2)
                  break;
                if ((value = reader.stringVerify()).length)
                  message.name = value;
                else
                  delete message.name;
                continue;
              }
            case 2: {
                if (wireType !== 2)
                  break;
                if (message.parameters === $util.emptyObject)
                  message.parameters = {};
                let end2 = reader.size() + reader.pos;
                if (end2 > reader.len)
                  throw $RangeError("index out of range");
                reader.len = end2;
                key = "";
                value = "";
                while (reader.pos < end2) {
                  let tag2 = reader.tag();
                  wireType = tag2 & 7;
                  switch (tag2 >>>= 3) {
                  case 1:
                    if (wireType !== 2)
                      break;
                    key = reader.stringVerify();
                    continue;
                  case 2:
                    if (wireType !== 2)
                      break;
                    value = reader.stringVerify();
                    continue;
                  }
                  reader.skipType(wireType, _depth, tag2);
                }
                if (reader.pos !== end2)
                  throw $RangeError("index out of range");
                reader.len = end;
                if (key === "__proto__")
                  $util.makeProp(message.parameters, key);
                message.parameters[key] = value;
                continue;
              }
            }
            reader.skipType(wireType, _depth, tag);
            if (!reader.discardUnknown) {
              $util.makeProp(message, "$unknowns", false);
              (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
            }
          }
          if (length !== $undefined) {
            if (reader.pos !== end)
              throw $RangeError("index out of range");
            reader.len = length;
          }
          if (_end !== $undefined)
            throw $Error("missing end group");
          return message;
        };

        Accelerator.fromObject = function (object, _depth) {
          if (object instanceof $root.inference.ModelOptimizationPolicy.ExecutionAccelerators.Accelerator)
            return object;
          if (!$util.isObject(object))
            throw $TypeError(".inference.ModelOptimizationPolicy.ExecutionAccelerators.Accelerator: object expected");
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          let message = new $root.inference.ModelOptimizationPolicy.ExecutionAccelerators.Accelerator();
          if (object.name != null)
            if (typeof object.name !== "string" || object.name.length)
              message.name = $String(object.name);
          if (object.parameters) {
            if (!$util.isObject(object.parameters))
              throw $TypeError(".inference.ModelOptimizationPolicy.ExecutionAccelerators.Accelerator.parameters: object expected");
            message.parameters = {};
            for (let keys = $Object.keys(object.parameters), i = 0; i < keys.length; ++i) {
              if (keys[i] === "__proto__")
                $util.makeProp(message.parameters, keys[i]);
              message.parameters[keys[i]] = $String(object.parameters[keys[i]]);
            }
          }
          return message;
        };

        Accelerator.toObject = function (message, options, _depth) {
          if (!options)
            options = {};
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          let object = {};
          if (options.objects || options.defaults)
            object.parameters = {};
          if (options.defaults)
            object.name = "";
          if (message.name != null && $Object.hasOwnProperty.call(message, "name"))
            object.name = message.name;
          let keys2;
          if (message.parameters && (keys2 = $Object.keys(message.parameters)).length) {
            object.parameters = {};
            for (let j = 0; j < keys2.length; ++j) {
              if (keys2[j] === "__proto__")
                $util.makeProp(object.parameters, keys2[j]);
              object.parameters[keys2[j]] = message.parameters[keys2[j]];
            }
          }
          return object;
        };

        return Accelerator;
      })();

      return ExecutionAccelerators;
    })();

    ModelOptimizationPolicy.PinnedMemoryBuffer = (function() {
      const PinnedMemoryBuffer = function (properties) {
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      PinnedMemoryBuffer.prototype.enable = false;

      PinnedMemoryBuffer.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.enable != null && $Object.hasOwnProperty.call(message, "enable") && message.enable !== false)
          writer.uint32(/* id 1, wireType 0 =*/8).bool(message.enable);
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      PinnedMemoryBuffer.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message, value;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.ModelOptimizationPolicy.PinnedMemoryBuffer();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 0)
                break;
              if (value = reader.bool())
                message.enable = value;
              else
                delete message.enable;
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      PinnedMemoryBuffer.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.ModelOptimizationPolicy.PinnedMemoryBuffer)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.ModelOptimizationPolicy.PinnedMemoryBuffer: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.ModelOptimizationPolicy.PinnedMemoryBuffer();
        if (object.enable != null)
          if (object.enable)
            message.enable = $Boolean(object.enable);
        return message;
      };

      PinnedMemoryBuffer.toObject = function (message, options, _depth) {
        if (!options)
          options = {};
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let object = {};
        if (options.defaults)
          object.enable = false;
        if (message.enable != null && $Object.hasOwnProperty.call(message, "enable"))
          object.enable = message.enable;
        return object;
      };

      return PinnedMemoryBuffer;
    })();

    return ModelOptimizationPolicy;
  })();

  inference.ModelQueuePolicy = (function() {
    const ModelQueuePolicy = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelQueuePolicy.prototype.timeoutAction = 0;

    ModelQueuePolicy.prototype.defaultTimeoutMicroseconds = 0;

    ModelQueuePolicy.prototype.allowTimeoutOverride = false;

    ModelQueuePolicy.prototype.maxQueueSize = 0;

    ModelQueuePolicy.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.timeoutAction != null && $Object.hasOwnProperty.call(message, "timeoutAction") && message.timeoutAction !== 0)
        writer.uint32(/* id 1, wireType 0 =*/8).int32(message.timeoutAction);
      if (message.defaultTimeoutMicroseconds != null && $Object.hasOwnProperty.call(message, "defaultTimeoutMicroseconds") && (typeof message.defaultTimeoutMicroseconds === "object" ? message.defaultTimeoutMicroseconds.low || message.defaultTimeoutMicroseconds.high : message.defaultTimeoutMicroseconds !== 0))
        writer.uint32(/* id 2, wireType 0 =*/16).uint64(message.defaultTimeoutMicroseconds);
      if (message.allowTimeoutOverride != null && $Object.hasOwnProperty.call(message, "allowTimeoutOverride") && message.allowTimeoutOverride !== false)
        writer.uint32(/* id 3, wireType 0 =*/24).bool(message.allowTimeoutOverride);
      if (message.maxQueueSize != null && $Object.hasOwnProperty.call(message, "maxQueueSize") && message.maxQueueSize !== 0)
        writer.uint32(/* id 4, wireType 0 =*/32).uint32(message.maxQueueSize);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelQueuePolicy.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelQueuePolicy();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 0)
              break;
            if (value = reader.int32())
              message.timeoutAction = value;
            else
              delete message.timeoutAction;
            continue;
          }
        case 2: {
            if (wireType !== 0)
              break;
            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
              message.defaultTimeoutMicroseconds = value;
            else
              delete message.defaultTimeoutMicroseconds;
            continue;
          }
        case 3: {
            if (wireType !== 0)
              break;
            if (value = reader.bool())
              message.allowTimeoutOverride = value;
            else
              delete message.allowTimeoutOverride;
            continue;
          }
        case 4: {
            if (wireType !== 0)
              break;
            if (value = reader.uint32())
              message.maxQueueSize = value;
            else
              delete message.maxQueueSize;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelQueuePolicy.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelQueuePolicy)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelQueuePolicy: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelQueuePolicy();
      if (object.timeoutAction !== 0 && (typeof object.timeoutAction !== "string" || $root.inference.ModelQueuePolicy.TimeoutAction[object.timeoutAction] !== 0))
        switch (object.timeoutAction) {
        case "REJECT":
        case 0:
          message.timeoutAction = 0;
          break;
        case "DELAY":
        case 1:
          message.timeoutAction = 1;
          break;
        default:
          if (typeof object.timeoutAction === "number" && (object.timeoutAction | 0) === object.timeoutAction)
            message.timeoutAction = object.timeoutAction;
        }
      if (object.defaultTimeoutMicroseconds != null)
        if (typeof object.defaultTimeoutMicroseconds === "object" ? object.defaultTimeoutMicroseconds.low || object.defaultTimeoutMicroseconds.high : $Number(object.defaultTimeoutMicroseconds) !== 0)
          if ($util.Long)
            message.defaultTimeoutMicroseconds = $util.Long.fromValue(object.defaultTimeoutMicroseconds, true);
          else if (typeof object.defaultTimeoutMicroseconds === "string")
            message.defaultTimeoutMicroseconds = $parseInt(object.defaultTimeoutMicroseconds, 10);
          else if (typeof object.defaultTimeoutMicroseconds === "number")
            message.defaultTimeoutMicroseconds = object.defaultTimeoutMicroseconds;
          else if (typeof object.defaultTimeoutMicroseconds === "object")
            message.defaultTimeoutMicroseconds = new $util.LongBits(object.defaultTimeoutMicroseconds.low >>> 0, object.defaultTimeoutMicroseconds.high >>> 0).toNumber(true);
      if (object.allowTimeoutOverride != null)
        if (object.allowTimeoutOverride)
          message.allowTimeoutOverride = $Boolean(object.allowTimeoutOverride);
      if (object.maxQueueSize != null)
        if ($Number(object.maxQueueSize) !== 0)
          message.maxQueueSize = object.maxQueueSize >>> 0;
      return message;
    };

    ModelQueuePolicy.toObject = function (message, options, _depth) {
      if (!options)
        options = {};
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let object = {};
      if (options.defaults) {
        object.timeoutAction = options.enums === $String ? "REJECT" : 0;
        if ($util.Long) {
          let long = new $util.Long(0, 0, true);
          object.defaultTimeoutMicroseconds = options.longs === $String ? long.toString() : options.longs === $Number ? long.toNumber() : typeof $BigInt !== "undefined" && options.longs === $BigInt ? long.toBigInt() : long;
        } else
          object.defaultTimeoutMicroseconds = options.longs === $String ? "0" : typeof $BigInt !== "undefined" && options.longs === $BigInt ? $BigInt("0") : 0;
        object.allowTimeoutOverride = false;
        object.maxQueueSize = 0;
      }
      if (message.timeoutAction != null && $Object.hasOwnProperty.call(message, "timeoutAction"))
        object.timeoutAction = options.enums === $String ? $root.inference.ModelQueuePolicy.TimeoutAction[message.timeoutAction] === $undefined ? message.timeoutAction : $root.inference.ModelQueuePolicy.TimeoutAction[message.timeoutAction] : message.timeoutAction;
      if (message.defaultTimeoutMicroseconds != null && $Object.hasOwnProperty.call(message, "defaultTimeoutMicroseconds"))
        if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
          object.defaultTimeoutMicroseconds = typeof message.defaultTimeoutMicroseconds === "number" ? $BigInt(message.defaultTimeoutMicroseconds) : $util.Long.fromBits(message.defaultTimeoutMicroseconds.low >>> 0, message.defaultTimeoutMicroseconds.high >>> 0, true).toBigInt();
        else if (typeof message.defaultTimeoutMicroseconds === "number")
          object.defaultTimeoutMicroseconds = options.longs === $String ? $String(message.defaultTimeoutMicroseconds) : message.defaultTimeoutMicroseconds;
        else
          object.defaultTimeoutMicroseconds = options.longs === $String ? $util.Long.prototype.toString.call(message.defaultTimeoutMicroseconds) : options.longs === $Number ? new $util.LongBits(message.defaultTimeoutMicroseconds.low >>> 0, message.defaultTimeoutMicroseconds.high >>> 0).toNumber(true) : message.defaultTimeoutMicroseconds;
      if (message.allowTimeoutOverride != null && $Object.hasOwnProperty.call(message, "allowTimeoutOverride"))
        object.allowTimeoutOverride = message.allowTimeoutOverride;
      if (message.maxQueueSize != null && $Object.hasOwnProperty.call(message, "maxQueueSize"))
        object.maxQueueSize = message.maxQueueSize;
      return object;
    };

    ModelQueuePolicy.TimeoutAction = (function() {
      const valuesById = $Object.create(null), values = $Object.create(valuesById);
      values[valuesById[0] = "REJECT"] = 0;
      values[valuesById[1] = "DELAY"] = 1;
      return values;
    })();

    return ModelQueuePolicy;
  })();

  inference.ModelDynamicBatching = (function() {
    const ModelDynamicBatching = function (properties) {
      this.preferredBatchSize = [];
      this.priorityQueuePolicy = {};
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelDynamicBatching.prototype.preferredBatchSize = $util.emptyArray;

    ModelDynamicBatching.prototype.maxQueueDelayMicroseconds = 0;

    ModelDynamicBatching.prototype.preserveOrdering = false;

    ModelDynamicBatching.prototype.priorityLevels = 0;

    ModelDynamicBatching.prototype.defaultPriorityLevel = 0;

    ModelDynamicBatching.prototype.defaultQueuePolicy = null;

    ModelDynamicBatching.prototype.priorityQueuePolicy = $util.emptyObject;

    ModelDynamicBatching.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.preferredBatchSize != null && message.preferredBatchSize.length)
        writer.uint32(/* id 1, wireType 2 =*/10).int32s(message.preferredBatchSize);
      if (message.maxQueueDelayMicroseconds != null && $Object.hasOwnProperty.call(message, "maxQueueDelayMicroseconds") && (typeof message.maxQueueDelayMicroseconds === "object" ? message.maxQueueDelayMicroseconds.low || message.maxQueueDelayMicroseconds.high : message.maxQueueDelayMicroseconds !== 0))
        writer.uint32(/* id 2, wireType 0 =*/16).uint64(message.maxQueueDelayMicroseconds);
      if (message.preserveOrdering != null && $Object.hasOwnProperty.call(message, "preserveOrdering") && message.preserveOrdering !== false)
        writer.uint32(/* id 3, wireType 0 =*/24).bool(message.preserveOrdering);
      if (message.priorityLevels != null && $Object.hasOwnProperty.call(message, "priorityLevels") && (typeof message.priorityLevels === "object" ? message.priorityLevels.low || message.priorityLevels.high : message.priorityLevels !== 0))
        writer.uint32(/* id 4, wireType 0 =*/32).uint64(message.priorityLevels);
      if (message.defaultPriorityLevel != null && $Object.hasOwnProperty.call(message, "defaultPriorityLevel") && (typeof message.defaultPriorityLevel === "object" ? message.defaultPriorityLevel.low || message.defaultPriorityLevel.high : message.defaultPriorityLevel !== 0))
        writer.uint32(/* id 5, wireType 0 =*/40).uint64(message.defaultPriorityLevel);
      if (message.defaultQueuePolicy != null && $Object.hasOwnProperty.call(message, "defaultQueuePolicy"))
        $root.inference.ModelQueuePolicy.encode(message.defaultQueuePolicy, writer.uint32(/* id 6, wireType 2 =*/50).fork(), _depth + 1).ldelim();
      if (message.priorityQueuePolicy != null && $Object.hasOwnProperty.call(message, "priorityQueuePolicy"))
        for (let keys = $Object.keys(message.priorityQueuePolicy), i = 0; i < keys.length; ++i) {
          writer.uint32(/* id 7, wireType 2 =*/58).fork().uint32(/* id 1, wireType 0 =*/8).uint64($util.longFromKey(keys[i], true));
          $root.inference.ModelQueuePolicy.encode(message.priorityQueuePolicy[keys[i]], writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim().ldelim();
        }
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelDynamicBatching.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, key, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelDynamicBatching();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType === 2) {
              if (!(message.preferredBatchSize && message.preferredBatchSize.length))
                message.preferredBatchSize = [];
              reader.int32s(message.preferredBatchSize);
              continue;
            }
            if (wireType !== 0)
              break;
            if (!(message.preferredBatchSize && message.preferredBatchSize.length))
              message.preferredBatchSize = [];
            message.preferredBatchSize.push(reader.int32());
            continue;
          }
        case 2: {
            if (wireType !== 0)
              break;
            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
              message.maxQueueDelayMicroseconds = value;
            else
              delete message.maxQueueDelayMicroseconds;
            continue;
          }
        case 3: {
            if (wireType !== 0)
              break;
            if (value = reader.bool())
              message.preserveOrdering = value;
            else
              delete message.preserveOrdering;
            continue;
          }
        case 4: {
            if (wireType !== 0)
              break;
            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
              message.priorityLevels = value;
            else
              delete message.priorityLevels;
            continue;
          }
        case 5: {
            if (wireType !== 0)
              break;
            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
              message.defaultPriorityLevel = value;
            else
              delete message.defaultPriorityLevel;
            continue;
          }
        case 6: {
            if (wireType !== 2)
              break;
            message.defaultQueuePolicy = $root.inference.ModelQueuePolicy.decode(reader, reader.size(), $undefined, _depth + 1, message.defaultQueuePolicy);
            continue;
          }
        case 7: {
            if (wireType !== 2)
              break;
            if (message.priorityQueuePolicy === $util.emptyObject)
              message.priorityQueuePolicy = {};
            let end2 = reader.size() + reader.pos;
            if (end2 > reader.len)
              throw $RangeError("index out of range");
            reader.len = end2;
            key = 0;
            value = null;
            while (reader.pos < end2) {
              let tag2 = reader.tag();
              wireType = tag2 & 7;
              switch (tag2 >>>= 3) {
              case 1:
                if (wireType !== 0)
                  break;
                key = reader.uint64();
                continue;
              case 2:
                if (wireType !== 2)
                  break;
                value = $root.inference.ModelQueuePolicy.decode(reader, reader.size(), $undefined, _depth + 1, value);
                continue;
              }
              reader.skipType(wireType, _depth, tag2);
            }
            if (reader.pos !== end2)
              throw $RangeError("index out of range");
            reader.len = end;
            message.priorityQueuePolicy[typeof key === "object" ? $util.longToHash(key) : key] = value || new $root.inference.ModelQueuePolicy();
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelDynamicBatching.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelDynamicBatching)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelDynamicBatching: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelDynamicBatching();
      if (object.preferredBatchSize) {
        if (!$Array.isArray(object.preferredBatchSize))
          throw $TypeError(".inference.ModelDynamicBatching.preferredBatchSize: array expected");
        message.preferredBatchSize = $Array(object.preferredBatchSize.length);
        for (let i = 0; i < object.preferredBatchSize.length; ++i)
          message.preferredBatchSize[i] = object.preferredBatchSize[i] | 0;
      }
      if (object.maxQueueDelayMicroseconds != null)
        if (typeof object.maxQueueDelayMicroseconds === "object" ? object.maxQueueDelayMicroseconds.low || object.maxQueueDelayMicroseconds.high : $Number(object.maxQueueDelayMicroseconds) !== 0)
          if ($util.Long)
            message.maxQueueDelayMicroseconds = $util.Long.fromValue(object.maxQueueDelayMicroseconds, true);
          else if (typeof object.maxQueueDelayMicroseconds === "string")
            message.maxQueueDelayMicroseconds = $parseInt(object.maxQueueDelayMicroseconds, 10);
          else if (typeof object.maxQueueDelayMicroseconds === "number")
            message.maxQueueDelayMicroseconds = object.maxQueueDelayMicroseconds;
          else if (typeof object.maxQueueDelayMicroseconds === "object")
            message.maxQueueDelayMicroseconds = new $util.LongBits(object.maxQueueDelayMicroseconds.low >>> 0, object.maxQueueDelayMicroseconds.high >>> 0).toNumber(true);
      if (object.preserveOrdering != null)
        if (object.preserveOrdering)
          message.preserveOrdering = $Boolean(object.preserveOrdering);
      if (object.priorityLevels != null)
        if (typeof object.priorityLevels === "object" ? object.priorityLevels.low || object.priorityLevels.high : $Number(object.priorityLevels) !== 0)
          if ($util.Long)
            message.priorityLevels = $util.Long.fromValue(object.priorityLevels, true);
          else if (typeof object.priorityLevels === "string")
            message.priorityLevels = $parseInt(object.priorityLevels, 10);
          else if (typeof object.priorityLevels === "number")
            message.priorityLevels = object.priorityLevels;
          else if (typeof object.priorityLevels === "object")
            message.priorityLevels = new $util.LongBits(object.priorityLevels.low >>> 0, object.priorityLevels.high >>> 0).toNumber(true);
      if (object.defaultPriorityLevel != null)
        if (typeof object.defaultPriorityLevel === "object" ? object.defaultPriorityLevel.low || object.defaultPriorityLevel.high : $Number(object.defaultPriorityLevel) !== 0)
          if ($util.Long)
            message.defaultPriorityLevel = $util.Long.fromValue(object.defaultPriorityLevel, true);
          else if (typeof object.defaultPriorityLevel === "string")
            message.defaultPriorityLevel = $parseInt(object.defaultPriorityLevel, 10);
          else if (typeof object.defaultPriorityLevel === "number")
            message.defaultPriorityLevel = object.defaultPriorityLevel;
          else if (typeof object.defaultPriorityLevel === "object")
            message.defaultPriorityLevel = new $util.LongBits(object.defaultPriorityLevel.low >>> 0, object.defaultPriorityLevel.high >>> 0).toNumber(true);
      if (object.defaultQueuePolicy != null) {
        if (!$util.isObject(object.defaultQueuePolicy))
          throw $TypeError(".inference.ModelDynamicBatching.defaultQueuePolicy: object expected");
        message.defaultQueuePolicy = $root.inference.ModelQueuePolicy.fromObject(object.defaultQueuePolicy, _depth + 1);
      }
      if (object.priorityQueuePolicy) {
        if (!$util.isObject(object.priorityQueuePolicy))
          throw $TypeError(".inference.ModelDynamicBatching.priorityQueuePolicy: object expected");
        message.priorityQueuePolicy = {};
        for (let keys = $Object.keys(object.priorityQueuePolicy), i = 0; i < keys.length; ++i) {
          if (keys[i] === "__proto__")
            $util.makeProp(message.priorityQueuePolicy, keys[i]);
          if (!$util.isObject(object.priorityQueuePolicy[keys[i]]))
            throw $TypeError(".inference.ModelDynamicBatching.priorityQueuePolicy: object expected");
          message.priorityQueuePolicy[keys[i]] = $root.inference.ModelQueuePolicy.fromObject(object.priorityQueuePolicy[keys[i]], _depth + 1);
        }
      }
      return message;
    };

    ModelDynamicBatching.toObject = function (message, options, _depth) {
      if (!options)
        options = {};
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let object = {};
      if (options.arrays || options.defaults)
        object.preferredBatchSize = [];
      if (options.objects || options.defaults)
        object.priorityQueuePolicy = {};
      if (options.defaults) {
        if ($util.Long) {
          let long = new $util.Long(0, 0, true);
          object.maxQueueDelayMicroseconds = options.longs === $String ? long.toString() : options.longs === $Number ? long.toNumber() : typeof $BigInt !== "undefined" && options.longs === $BigInt ? long.toBigInt() : long;
        } else
          object.maxQueueDelayMicroseconds = options.longs === $String ? "0" : typeof $BigInt !== "undefined" && options.longs === $BigInt ? $BigInt("0") : 0;
        object.preserveOrdering = false;
        if ($util.Long) {
          let long = new $util.Long(0, 0, true);
          object.priorityLevels = options.longs === $String ? long.toString() : options.longs === $Number ? long.toNumber() : typeof $BigInt !== "undefined" && options.longs === $BigInt ? long.toBigInt() : long;
        } else
          object.priorityLevels = options.longs === $String ? "0" : typeof $BigInt !== "undefined" && options.longs === $BigInt ? $BigInt("0") : 0;
        if ($util.Long) {
          let long = new $util.Long(0, 0, true);
          object.defaultPriorityLevel = options.longs === $String ? long.toString() : options.longs === $Number ? long.toNumber() : typeof $BigInt !== "undefined" && options.longs === $BigInt ? long.toBigInt() : long;
        } else
          object.defaultPriorityLevel = options.longs === $String ? "0" : typeof $BigInt !== "undefined" && options.longs === $BigInt ? $BigInt("0") : 0;
        object.defaultQueuePolicy = null;
      }
      if (message.preferredBatchSize && message.preferredBatchSize.length) {
        object.preferredBatchSize = $Array(message.preferredBatchSize.length);
        for (let j = 0; j < message.preferredBatchSize.length; ++j)
          object.preferredBatchSize[j] = message.preferredBatchSize[j];
      }
      if (message.maxQueueDelayMicroseconds != null && $Object.hasOwnProperty.call(message, "maxQueueDelayMicroseconds"))
        if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
          object.maxQueueDelayMicroseconds = typeof message.maxQueueDelayMicroseconds === "number" ? $BigInt(message.maxQueueDelayMicroseconds) : $util.Long.fromBits(message.maxQueueDelayMicroseconds.low >>> 0, message.maxQueueDelayMicroseconds.high >>> 0, true).toBigInt();
        else if (typeof message.maxQueueDelayMicroseconds === "number")
          object.maxQueueDelayMicroseconds = options.longs === $String ? $String(message.maxQueueDelayMicroseconds) : message.maxQueueDelayMicroseconds;
        else
          object.maxQueueDelayMicroseconds = options.longs === $String ? $util.Long.prototype.toString.call(message.maxQueueDelayMicroseconds) : options.longs === $Number ? new $util.LongBits(message.maxQueueDelayMicroseconds.low >>> 0, message.maxQueueDelayMicroseconds.high >>> 0).toNumber(true) : message.maxQueueDelayMicroseconds;
      if (message.preserveOrdering != null && $Object.hasOwnProperty.call(message, "preserveOrdering"))
        object.preserveOrdering = message.preserveOrdering;
      if (message.priorityLevels != null && $Object.hasOwnProperty.call(message, "priorityLevels"))
        if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
          object.priorityLevels = typeof message.priorityLevels === "number" ? $BigInt(message.priorityLevels) : $util.Long.fromBits(message.priorityLevels.low >>> 0, message.priorityLevels.high >>> 0, true).toBigInt();
        else if (typeof message.priorityLevels === "number")
          object.priorityLevels = options.longs === $String ? $String(message.priorityLevels) : message.priorityLevels;
        else
          object.priorityLevels = options.longs === $String ? $util.Long.prototype.toString.call(message.priorityLevels) : options.longs === $Number ? new $util.LongBits(message.priorityLevels.low >>> 0, message.priorityLevels.high >>> 0).toNumber(true) : message.priorityLevels;
      if (message.defaultPriorityLevel != null && $Object.hasOwnProperty.call(message, "defaultPriorityLevel"))
        if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
          object.defaultPriorityLevel = typeof message.defaultPriorityLevel === "number" ? $BigInt(message.defaultPriorityLevel) : $util.Long.fromBits(message.defaultPriorityLevel.low >>> 0, message.defaultPriorityLevel.high >>> 0, true).toBigInt();
        else if (typeof message.defaultPriorityLevel === "number")
          object.defaultPriorityLevel = options.longs === $String ? $String(message.defaultPriorityLevel) : message.defaultPriorityLevel;
        else
          object.defaultPriorityLevel = options.longs === $String ? $util.Long.prototype.toString.call(message.defaultPriorityLevel) : options.longs === $Number ? new $util.LongBits(message.defaultPriorityLevel.low >>> 0, message.defaultPriorityLevel.high >>> 0).toNumber(true) : message.defaultPriorityLevel;
      if (message.defaultQueuePolicy != null && $Object.hasOwnProperty.call(message, "defaultQueuePolicy"))
        object.defaultQueuePolicy = $root.inference.ModelQueuePolicy.toObject(message.defaultQueuePolicy, options, _depth + 1);
      let keys2;
      if (message.priorityQueuePolicy && (keys2 = $Object.keys(message.priorityQueuePolicy)).length) {
        object.priorityQueuePolicy = {};
        for (let j = 0; j < keys2.length; ++j) {
          let k2 = $util.longFromKey(keys2[j], true).toString();
          if (keys2[j] === "__proto__")
            $util.makeProp(object.priorityQueuePolicy, keys2[j]);
          object.priorityQueuePolicy[k2] = $root.inference.ModelQueuePolicy.toObject(message.priorityQueuePolicy[keys2[j]], options, _depth + 1);
        }
      }
      return object;
    };

    return ModelDynamicBatching;
  })();

  inference.ModelSequenceBatching = (function() {
    const ModelSequenceBatching = function (properties) {
      this.controlInput = [];
      this.state = [];
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelSequenceBatching.prototype.direct = null;

    ModelSequenceBatching.prototype.oldest = null;

    ModelSequenceBatching.prototype.maxSequenceIdleMicroseconds = 0;

    ModelSequenceBatching.prototype.controlInput = $util.emptyArray;

    ModelSequenceBatching.prototype.state = $util.emptyArray;

    ModelSequenceBatching.prototype.iterativeSequence = false;

    // OneOf field names bound to virtual getters and setters
    let $oneOfFields;

    $Object.defineProperty(ModelSequenceBatching.prototype, "strategyChoice", {
      get: $util.oneOfGetter($oneOfFields = ["direct", "oldest"]),
      set: $util.oneOfSetter($oneOfFields)
    });

    ModelSequenceBatching.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.maxSequenceIdleMicroseconds != null && $Object.hasOwnProperty.call(message, "maxSequenceIdleMicroseconds") && (typeof message.maxSequenceIdleMicroseconds === "object" ? message.maxSequenceIdleMicroseconds.low || message.maxSequenceIdleMicroseconds.high : message.maxSequenceIdleMicroseconds !== 0))
        writer.uint32(/* id 1, wireType 0 =*/8).uint64(message.maxSequenceIdleMicroseconds);
      if (message.controlInput != null && message.controlInput.length)
        for (let i = 0; i < message.controlInput.length; ++i)
          $root.inference.ModelSequenceBatching.ControlInput.encode(message.controlInput[i], writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim();
      if (message.direct != null && $Object.hasOwnProperty.call(message, "direct"))
        $root.inference.ModelSequenceBatching.StrategyDirect.encode(message.direct, writer.uint32(/* id 3, wireType 2 =*/26).fork(), _depth + 1).ldelim();
      if (message.oldest != null && $Object.hasOwnProperty.call(message, "oldest"))
        $root.inference.ModelSequenceBatching.StrategyOldest.encode(message.oldest, writer.uint32(/* id 4, wireType 2 =*/34).fork(), _depth + 1).ldelim();
      if (message.state != null && message.state.length)
        for (let i = 0; i < message.state.length; ++i)
          $root.inference.ModelSequenceBatching.State.encode(message.state[i], writer.uint32(/* id 5, wireType 2 =*/42).fork(), _depth + 1).ldelim();
      if (message.iterativeSequence != null && $Object.hasOwnProperty.call(message, "iterativeSequence") && message.iterativeSequence !== false)
        writer.uint32(/* id 6, wireType 0 =*/48).bool(message.iterativeSequence);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelSequenceBatching.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelSequenceBatching();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 3: {
            if (wireType !== 2)
              break;
            message.direct = $root.inference.ModelSequenceBatching.StrategyDirect.decode(reader, reader.size(), $undefined, _depth + 1, message.direct);
            message.strategyChoice = "direct";
            continue;
          }
        case 4: {
            if (wireType !== 2)
              break;
            message.oldest = $root.inference.ModelSequenceBatching.StrategyOldest.decode(reader, reader.size(), $undefined, _depth + 1, message.oldest);
            message.strategyChoice = "oldest";
            continue;
          }
        case 1: {
            if (wireType !== 0)
              break;
            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
              message.maxSequenceIdleMicroseconds = value;
            else
              delete message.maxSequenceIdleMicroseconds;
            continue;
          }
        case 2: {
            if (wireType !== 2)
              break;
            if (!(message.controlInput && message.controlInput.length))
              message.controlInput = [];
            message.controlInput.push($root.inference.ModelSequenceBatching.ControlInput.decode(reader, reader.size(), $undefined, _depth + 1));
            continue;
          }
        case 5: {
            if (wireType !== 2)
              break;
            if (!(message.state && message.state.length))
              message.state = [];
            message.state.push($root.inference.ModelSequenceBatching.State.decode(reader, reader.size(), $undefined, _depth + 1));
            continue;
          }
        case 6: {
            if (wireType !== 0)
              break;
            if (value = reader.bool())
              message.iterativeSequence = value;
            else
              delete message.iterativeSequence;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelSequenceBatching.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelSequenceBatching)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelSequenceBatching: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelSequenceBatching();
      if (object.direct != null) {
        if (!$util.isObject(object.direct))
          throw $TypeError(".inference.ModelSequenceBatching.direct: object expected");
        message.direct = $root.inference.ModelSequenceBatching.StrategyDirect.fromObject(object.direct, _depth + 1);
      }
      if (object.oldest != null) {
        if (!$util.isObject(object.oldest))
          throw $TypeError(".inference.ModelSequenceBatching.oldest: object expected");
        message.oldest = $root.inference.ModelSequenceBatching.StrategyOldest.fromObject(object.oldest, _depth + 1);
      }
      if (object.maxSequenceIdleMicroseconds != null)
        if (typeof object.maxSequenceIdleMicroseconds === "object" ? object.maxSequenceIdleMicroseconds.low || object.maxSequenceIdleMicroseconds.high : $Number(object.maxSequenceIdleMicroseconds) !== 0)
          if ($util.Long)
            message.maxSequenceIdleMicroseconds = $util.Long.fromValue(object.maxSequenceIdleMicroseconds, true);
          else if (typeof object.maxSequenceIdleMicroseconds === "string")
            message.maxSequenceIdleMicroseconds = $parseInt(object.maxSequenceIdleMicroseconds, 10);
          else if (typeof object.maxSequenceIdleMicroseconds === "number")
            message.maxSequenceIdleMicroseconds = object.maxSequenceIdleMicroseconds;
          else if (typeof object.maxSequenceIdleMicroseconds === "object")
            message.maxSequenceIdleMicroseconds = new $util.LongBits(object.maxSequenceIdleMicroseconds.low >>> 0, object.maxSequenceIdleMicroseconds.high >>> 0).toNumber(true);
      if (object.controlInput) {
        if (!$Array.isArray(object.controlInput))
          throw $TypeError(".inference.ModelSequenceBatching.controlInput: array expected");
        message.controlInput = $Array(object.controlInput.length);
        for (let i = 0; i < object.controlInput.length; ++i) {
          if (!$util.isObject(object.controlInput[i]))
            throw $TypeError(".inference.ModelSequenceBatching.controlInput: object expected");
          message.controlInput[i] = $root.inference.ModelSequenceBatching.ControlInput.fromObject(object.controlInput[i], _depth + 1);
        }
      }
      if (object.state) {
        if (!$Array.isArray(object.state))
          throw $TypeError(".inference.ModelSequenceBatching.state: array expected");
        message.state = $Array(object.state.length);
        for (let i = 0; i < object.state.length; ++i) {
          if (!$util.isObject(object.state[i]))
            throw $TypeError(".inference.ModelSequenceBatching.state: object expected");
          message.state[i] = $root.inference.ModelSequenceBatching.State.fromObject(object.state[i], _depth + 1);
        }
      }
      if (object.iterativeSequence != null)
        if (object.iterativeSequence)
          message.iterativeSequence = $Boolean(object.iterativeSequence);
      return message;
    };

    ModelSequenceBatching.toObject = function (message, options, _depth) {
      if (!options)
        options = {};
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let object = {};
      if (options.arrays || options.defaults) {
        object.controlInput = [];
        object.state = [];
      }
      if (options.defaults) {
        if ($util.Long) {
          let long = new $util.Long(0, 0, true);
          object.maxSequenceIdleMicroseconds = options.longs === $String ? long.toString() : options.longs === $Number ? long.toNumber() : typeof $BigInt !== "undefined" && options.longs === $BigInt ? long.toBigInt() : long;
        } else
          object.maxSequenceIdleMicroseconds = options.longs === $String ? "0" : typeof $BigInt !== "undefined" && options.longs === $BigInt ? $BigInt("0") : 0;
        object.iterativeSequence = false;
      }
      if (message.maxSequenceIdleMicroseconds != null && $Object.hasOwnProperty.call(message, "maxSequenceIdleMicroseconds"))
        if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
          object.maxSequenceIdleMicroseconds = typeof message.maxSequenceIdleMicroseconds === "number" ? $BigInt(message.maxSequenceIdleMicroseconds) : $util.Long.fromBits(message.maxSequenceIdleMicroseconds.low >>> 0, message.maxSequenceIdleMicroseconds.high >>> 0, true).toBigInt();
        else if (typeof message.maxSequenceIdleMicroseconds === "number")
          object.maxSequenceIdleMicroseconds = options.longs === $String ? $String(message.maxSequenceIdleMicroseconds) : message.maxSequenceIdleMicroseconds;
        else
          object.maxSequenceIdleMicroseconds = options.longs === $String ? $util.Long.prototype.toString.call(message.maxSequenceIdleMicroseconds) : options.longs === $Number ? new $util.LongBits(message.maxSequenceIdleMicroseconds.low >>> 0, message.maxSequenceIdleMicroseconds.high >>> 0).toNumber(true) : message.maxSequenceIdleMicroseconds;
      if (message.controlInput && message.controlInput.length) {
        object.controlInput = $Array(message.controlInput.length);
        for (let j = 0; j < message.controlInput.length; ++j)
          object.controlInput[j] = $root.inference.ModelSequenceBatching.ControlInput.toObject(message.controlInput[j], options, _depth + 1);
      }
      if (message.direct != null && $Object.hasOwnProperty.call(message, "direct")) {
        object.direct = $root.inference.ModelSequenceBatching.StrategyDirect.toObject(message.direct, options, _depth + 1);
        if (options.oneofs)
          object.strategyChoice = "direct";
      }
      if (message.oldest != null && $Object.hasOwnProperty.call(message, "oldest")) {
        object.oldest = $root.inference.ModelSequenceBatching.StrategyOldest.toObject(message.oldest, options, _depth + 1);
        if (options.oneofs)
          object.strategyChoice = "oldest";
      }
      if (message.state && message.state.length) {
        object.state = $Array(message.state.length);
        for (let j = 0; j < message.state.length; ++j)
          object.state[j] = $root.inference.ModelSequenceBatching.State.toObject(message.state[j], options, _depth + 1);
      }
      if (message.iterativeSequence != null && $Object.hasOwnProperty.call(message, "iterativeSequence"))
        object.iterativeSequence = message.iterativeSequence;
      return object;
    };

    ModelSequenceBatching.Control = (function() {
      const Control = function (properties) {
        this.int32FalseTrue = [];
        this.fp32FalseTrue = [];
        this.boolFalseTrue = [];
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      Control.prototype.kind = 0;

      Control.prototype.int32FalseTrue = $util.emptyArray;

      Control.prototype.fp32FalseTrue = $util.emptyArray;

      Control.prototype.boolFalseTrue = $util.emptyArray;

      Control.prototype.dataType = 0;

      Control.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.kind != null && $Object.hasOwnProperty.call(message, "kind") && message.kind !== 0)
          writer.uint32(/* id 1, wireType 0 =*/8).int32(message.kind);
        if (message.int32FalseTrue != null && message.int32FalseTrue.length)
          writer.uint32(/* id 2, wireType 2 =*/18).int32s(message.int32FalseTrue);
        if (message.fp32FalseTrue != null && message.fp32FalseTrue.length)
          writer.uint32(/* id 3, wireType 2 =*/26).floats(message.fp32FalseTrue);
        if (message.dataType != null && $Object.hasOwnProperty.call(message, "dataType") && message.dataType !== 0)
          writer.uint32(/* id 4, wireType 0 =*/32).int32(message.dataType);
        if (message.boolFalseTrue != null && message.boolFalseTrue.length)
          writer.uint32(/* id 5, wireType 2 =*/42).bools(message.boolFalseTrue);
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      Control.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message, value;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.ModelSequenceBatching.Control();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 0)
                break;
              if (value = reader.int32())
                message.kind = value;
              else
                delete message.kind;
              continue;
            }
          case 2: {
              if (wireType === 2) {
                if (!(message.int32FalseTrue && message.int32FalseTrue.length))
                  message.int32FalseTrue = [];
                reader.int32s(message.int32FalseTrue);
                continue;
              }
              if (wireType !== 0)
                break;
              if (!(message.int32FalseTrue && message.int32FalseTrue.length))
                message.int32FalseTrue = [];
              message.int32FalseTrue.push(reader.int32());
              continue;
            }
          case 3: {
              if (wireType === 2) {
                if (!(message.fp32FalseTrue && message.fp32FalseTrue.length))
                  message.fp32FalseTrue = [];
                reader.floats(message.fp32FalseTrue);
                continue;
              }
              if (wireType !== 5)
                break;
              if (!(message.fp32FalseTrue && message.fp32FalseTrue.length))
                message.fp32FalseTrue = [];
              message.fp32FalseTrue.push(reader.float());
              continue;
            }
          case 5: {
              if (wireType === 2) {
                if (!(message.boolFalseTrue && message.boolFalseTrue.length))
                  message.boolFalseTrue = [];
                reader.bools(message.boolFalseTrue);
                continue;
              }
              if (wireType !== 0)
                break;
              if (!(message.boolFalseTrue && message.boolFalseTrue.length))
                message.boolFalseTrue = [];
              message.boolFalseTrue.push(reader.bool());
              continue;
            }
          case 4: {
              if (wireType !== 0)
                break;
              if (value = reader.int32())
                message.dataType = value;
              else
                delete message.dataType;
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      Control.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.ModelSequenceBatching.Control)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.ModelSequenceBatching.Control: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.ModelSequenceBatching.Control();
        if (object.kind !== 0 && (typeof object.kind !== "string" || $root.inference.ModelSequenceBatching.Control.Kind[object.kind] !== 0))
          switch (object.kind) {
          case "CONTROL_SEQUENCE_START":
          case 0:
            message.kind = 0;
            break;
          case "CONTROL_SEQUENCE_READY":
          case 1:
            message.kind = 1;
            break;
          case "CONTROL_SEQUENCE_END":
          case 2:
            message.kind = 2;
            break;
          case "CONTROL_SEQUENCE_CORRID":
          case 3:
            message.kind = 3;
            break;
          default:
            if (typeof object.kind === "number" && (object.kind | 0) === object.kind)
              message.kind = object.kind;
          }
        if (object.int32FalseTrue) {
          if (!$Array.isArray(object.int32FalseTrue))
            throw $TypeError(".inference.ModelSequenceBatching.Control.int32FalseTrue: array expected");
          message.int32FalseTrue = $Array(object.int32FalseTrue.length);
          for (let i = 0; i < object.int32FalseTrue.length; ++i)
            message.int32FalseTrue[i] = object.int32FalseTrue[i] | 0;
        }
        if (object.fp32FalseTrue) {
          if (!$Array.isArray(object.fp32FalseTrue))
            throw $TypeError(".inference.ModelSequenceBatching.Control.fp32FalseTrue: array expected");
          message.fp32FalseTrue = $Array(object.fp32FalseTrue.length);
          for (let i = 0; i < object.fp32FalseTrue.length; ++i)
            message.fp32FalseTrue[i] = $Number(object.fp32FalseTrue[i]);
        }
        if (object.boolFalseTrue) {
          if (!$Array.isArray(object.boolFalseTrue))
            throw $TypeError(".inference.ModelSequenceBatching.Control.boolFalseTrue: array expected");
          message.boolFalseTrue = $Array(object.boolFalseTrue.length);
          for (let i = 0; i < object.boolFalseTrue.length; ++i)
            message.boolFalseTrue[i] = $Boolean(object.boolFalseTrue[i]);
        }
        if (object.dataType !== 0 && (typeof object.dataType !== "string" || $root.inference.DataType[object.dataType] !== 0))
          switch (object.dataType) {
          case "TYPE_INVALID":
          case 0:
            message.dataType = 0;
            break;
          case "TYPE_BOOL":
          case 1:
            message.dataType = 1;
            break;
          case "TYPE_UINT8":
          case 2:
            message.dataType = 2;
            break;
          case "TYPE_UINT16":
          case 3:
            message.dataType = 3;
            break;
          case "TYPE_UINT32":
          case 4:
            message.dataType = 4;
            break;
          case "TYPE_UINT64":
          case 5:
            message.dataType = 5;
            break;
          case "TYPE_INT8":
          case 6:
            message.dataType = 6;
            break;
          case "TYPE_INT16":
          case 7:
            message.dataType = 7;
            break;
          case "TYPE_INT32":
          case 8:
            message.dataType = 8;
            break;
          case "TYPE_INT64":
          case 9:
            message.dataType = 9;
            break;
          case "TYPE_FP16":
          case 10:
            message.dataType = 10;
            break;
          case "TYPE_FP32":
          case 11:
            message.dataType = 11;
            break;
          case "TYPE_FP64":
          case 12:
            message.dataType = 12;
            break;
          case "TYPE_STRING":
          case 13:
            message.dataType = 13;
            break;
          case "TYPE_BF16":
          case 14:
            message.dataType = 14;
            break;
          default:
            if (typeof object.dataType === "number" && (object.dataType | 0) === object.dataType)
              message.dataType = object.dataType;
          }
        return message;
      };

      Control.toObject = function (message, options, _depth) {
        if (!options)
          options = {};
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let object = {};
        if (options.arrays || options.defaults) {
          object.int32FalseTrue = [];
          object.fp32FalseTrue = [];
          object.boolFalseTrue = [];
        }
        if (options.defaults) {
          object.kind = options.enums === $String ? "CONTROL_SEQUENCE_START" : 0;
          object.dataType = options.enums === $String ? "TYPE_INVALID" : 0;
        }
        if (message.kind != null && $Object.hasOwnProperty.call(message, "kind"))
          object.kind = options.enums === $String ? $root.inference.ModelSequenceBatching.Control.Kind[message.kind] === $undefined ? message.kind : $root.inference.ModelSequenceBatching.Control.Kind[message.kind] : message.kind;
        if (message.int32FalseTrue && message.int32FalseTrue.length) {
          object.int32FalseTrue = $Array(message.int32FalseTrue.length);
          for (let j = 0; j < message.int32FalseTrue.length; ++j)
            object.int32FalseTrue[j] = message.int32FalseTrue[j];
        }
        if (message.fp32FalseTrue && message.fp32FalseTrue.length) {
          object.fp32FalseTrue = $Array(message.fp32FalseTrue.length);
          for (let j = 0; j < message.fp32FalseTrue.length; ++j)
            object.fp32FalseTrue[j] = options.json && !$isFinite(message.fp32FalseTrue[j]) ? $String(message.fp32FalseTrue[j]) : message.fp32FalseTrue[j];
        }
        if (message.dataType != null && $Object.hasOwnProperty.call(message, "dataType"))
          object.dataType = options.enums === $String ? $root.inference.DataType[message.dataType] === $undefined ? message.dataType : $root.inference.DataType[message.dataType] : message.dataType;
        if (message.boolFalseTrue && message.boolFalseTrue.length) {
          object.boolFalseTrue = $Array(message.boolFalseTrue.length);
          for (let j = 0; j < message.boolFalseTrue.length; ++j)
            object.boolFalseTrue[j] = message.boolFalseTrue[j];
        }
        return object;
      };

      Control.Kind = (function() {
        const valuesById = $Object.create(null), values = $Object.create(valuesById);
        values[valuesById[0] = "CONTROL_SEQUENCE_START"] = 0;
        values[valuesById[1] = "CONTROL_SEQUENCE_READY"] = 1;
        values[valuesById[2] = "CONTROL_SEQUENCE_END"] = 2;
        values[valuesById[3] = "CONTROL_SEQUENCE_CORRID"] = 3;
        return values;
      })();

      return Control;
    })();

    ModelSequenceBatching.ControlInput = (function() {
      const ControlInput = function (properties) {
        this.control = [];
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      ControlInput.prototype.name = "";

      ControlInput.prototype.control = $util.emptyArray;

      ControlInput.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
          writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
        if (message.control != null && message.control.length)
          for (let i = 0; i < message.control.length; ++i)
            $root.inference.ModelSequenceBatching.Control.encode(message.control[i], writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim();
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      ControlInput.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message, value;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.ModelSequenceBatching.ControlInput();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 2)
                break;
              if ((value = reader.stringVerify()).length)
                message.name = value;
              else
                delete message.name;
              continue;
            }
          case 2: {
              if (wireType !== 2)
                break;
              if (!(message.control && message.control.length))
                message.control = [];
              message.control.push($root.inference.ModelSequenceBatching.Control.decode(reader, reader.size(), $undefined, _depth + 1));
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      ControlInput.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.ModelSequenceBatching.ControlInput)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.ModelSequenceBatching.ControlInput: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.ModelSequenceBatching.ControlInput();
        if (object.name != null)
          if (typeof object.name !== "string" || object.name.length)
            message.name = $String(object.name);
        if (object.control) {
          if (!$Array.isArray(object.control))
            throw $TypeError(".inference.ModelSequenceBatching.ControlInput.control: array expected");
          message.control = $Array(object.control.length);
          for (let i = 0; i < object.control.length; ++i) {
            if (!$util.isObject(object.control[i]))
              throw $TypeError(".inference.ModelSequenceBatching.ControlInput.control: object expected");
            message.control[i] = $root.inference.ModelSequenceBatching.Control.fromObject(object.control[i], _depth + 1);
          }
        }
        return message;
      };

      ControlInput.toObject = function (message, options, _depth) {
        if (!options)
          options = {};
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let object = {};
        if (options.arrays || options.defaults)
          object.control = [];
        if (options.defaults)
          object.name = "";
        if (message.name != null && $Object.hasOwnProperty.call(message, "name"))
          object.name = message.name;
        if (message.control && message.control.length) {
          object.control = $Array(message.control.length);
          for (let j = 0; j < message.control.length; ++j)
            object.control[j] = $root.inference.ModelSequenceBatching.Control.toObject(message.control[j], options, _depth + 1);
        }
        return object;
      };

      return ControlInput;
    })();

    ModelSequenceBatching.InitialState = (function() {
      const InitialState = function (properties) {
        this.dims = [];
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      InitialState.prototype.dataType = 0;

      InitialState.prototype.dims = $util.emptyArray;

      InitialState.prototype.zeroData = null;

      InitialState.prototype.dataFile = null;

      InitialState.prototype.name = "";

      // OneOf field names bound to virtual getters and setters
      let $oneOfFields;

      $Object.defineProperty(InitialState.prototype, "stateData", {
        get: $util.oneOfGetter($oneOfFields = ["zeroData", "dataFile"]),
        set: $util.oneOfSetter($oneOfFields)
      });

      InitialState.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.dataType != null && $Object.hasOwnProperty.call(message, "dataType") && message.dataType !== 0)
          writer.uint32(/* id 1, wireType 0 =*/8).int32(message.dataType);
        if (message.dims != null && message.dims.length)
          writer.uint32(/* id 2, wireType 2 =*/18).int64s(message.dims);
        if (message.zeroData != null && $Object.hasOwnProperty.call(message, "zeroData"))
          writer.uint32(/* id 3, wireType 0 =*/24).bool(message.zeroData);
        if (message.dataFile != null && $Object.hasOwnProperty.call(message, "dataFile"))
          writer.uint32(/* id 4, wireType 2 =*/34).string(message.dataFile);
        if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
          writer.uint32(/* id 5, wireType 2 =*/42).string(message.name);
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      InitialState.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message, value;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.ModelSequenceBatching.InitialState();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 0)
                break;
              if (value = reader.int32())
                message.dataType = value;
              else
                delete message.dataType;
              continue;
            }
          case 2: {
              if (wireType === 2) {
                if (!(message.dims && message.dims.length))
                  message.dims = [];
                reader.int64s(message.dims);
                continue;
              }
              if (wireType !== 0)
                break;
              if (!(message.dims && message.dims.length))
                message.dims = [];
              message.dims.push(reader.int64());
              continue;
            }
          case 3: {
              if (wireType !== 0)
                break;
              message.zeroData = reader.bool();
              message.stateData = "zeroData";
              continue;
            }
          case 4: {
              if (wireType !== 2)
                break;
              message.dataFile = reader.stringVerify();
              message.stateData = "dataFile";
              continue;
            }
          case 5: {
              if (wireType !== 2)
                break;
              if ((value = reader.stringVerify()).length)
                message.name = value;
              else
                delete message.name;
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      InitialState.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.ModelSequenceBatching.InitialState)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.ModelSequenceBatching.InitialState: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.ModelSequenceBatching.InitialState();
        if (object.dataType !== 0 && (typeof object.dataType !== "string" || $root.inference.DataType[object.dataType] !== 0))
          switch (object.dataType) {
          case "TYPE_INVALID":
          case 0:
            message.dataType = 0;
            break;
          case "TYPE_BOOL":
          case 1:
            message.dataType = 1;
            break;
          case "TYPE_UINT8":
          case 2:
            message.dataType = 2;
            break;
          case "TYPE_UINT16":
          case 3:
            message.dataType = 3;
            break;
          case "TYPE_UINT32":
          case 4:
            message.dataType = 4;
            break;
          case "TYPE_UINT64":
          case 5:
            message.dataType = 5;
            break;
          case "TYPE_INT8":
          case 6:
            message.dataType = 6;
            break;
          case "TYPE_INT16":
          case 7:
            message.dataType = 7;
            break;
          case "TYPE_INT32":
          case 8:
            message.dataType = 8;
            break;
          case "TYPE_INT64":
          case 9:
            message.dataType = 9;
            break;
          case "TYPE_FP16":
          case 10:
            message.dataType = 10;
            break;
          case "TYPE_FP32":
          case 11:
            message.dataType = 11;
            break;
          case "TYPE_FP64":
          case 12:
            message.dataType = 12;
            break;
          case "TYPE_STRING":
          case 13:
            message.dataType = 13;
            break;
          case "TYPE_BF16":
          case 14:
            message.dataType = 14;
            break;
          default:
            if (typeof object.dataType === "number" && (object.dataType | 0) === object.dataType)
              message.dataType = object.dataType;
          }
        if (object.dims) {
          if (!$Array.isArray(object.dims))
            throw $TypeError(".inference.ModelSequenceBatching.InitialState.dims: array expected");
          message.dims = $Array(object.dims.length);
          for (let i = 0; i < object.dims.length; ++i)
            if ($util.Long)
              message.dims[i] = $util.Long.fromValue(object.dims[i], false);
            else if (typeof object.dims[i] === "string")
              message.dims[i] = $parseInt(object.dims[i], 10);
            else if (typeof object.dims[i] === "number")
              message.dims[i] = object.dims[i];
            else if (typeof object.dims[i] === "object")
              message.dims[i] = new $util.LongBits(object.dims[i].low >>> 0, object.dims[i].high >>> 0).toNumber();
        }
        if (object.zeroData != null)
          message.zeroData = $Boolean(object.zeroData);
        if (object.dataFile != null)
          message.dataFile = $String(object.dataFile);
        if (object.name != null)
          if (typeof object.name !== "string" || object.name.length)
            message.name = $String(object.name);
        return message;
      };

      InitialState.toObject = function (message, options, _depth) {
        if (!options)
          options = {};
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let object = {};
        if (options.arrays || options.defaults)
          object.dims = [];
        if (options.defaults) {
          object.dataType = options.enums === $String ? "TYPE_INVALID" : 0;
          object.name = "";
        }
        if (message.dataType != null && $Object.hasOwnProperty.call(message, "dataType"))
          object.dataType = options.enums === $String ? $root.inference.DataType[message.dataType] === $undefined ? message.dataType : $root.inference.DataType[message.dataType] : message.dataType;
        if (message.dims && message.dims.length) {
          object.dims = $Array(message.dims.length);
          for (let j = 0; j < message.dims.length; ++j)
            if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
              object.dims[j] = typeof message.dims[j] === "number" ? $BigInt(message.dims[j]) : $util.Long.fromBits(message.dims[j].low >>> 0, message.dims[j].high >>> 0, false).toBigInt();
            else if (typeof message.dims[j] === "number")
              object.dims[j] = options.longs === $String ? $String(message.dims[j]) : message.dims[j];
            else
              object.dims[j] = options.longs === $String ? $util.Long.prototype.toString.call(message.dims[j]) : options.longs === $Number ? new $util.LongBits(message.dims[j].low >>> 0, message.dims[j].high >>> 0).toNumber() : message.dims[j];
        }
        if (message.zeroData != null && $Object.hasOwnProperty.call(message, "zeroData")) {
          object.zeroData = message.zeroData;
          if (options.oneofs)
            object.stateData = "zeroData";
        }
        if (message.dataFile != null && $Object.hasOwnProperty.call(message, "dataFile")) {
          object.dataFile = message.dataFile;
          if (options.oneofs)
            object.stateData = "dataFile";
        }
        if (message.name != null && $Object.hasOwnProperty.call(message, "name"))
          object.name = message.name;
        return object;
      };

      return InitialState;
    })();

    ModelSequenceBatching.State = (function() {
      const State = function (properties) {
        this.dims = [];
        this.initialState = [];
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      State.prototype.inputName = "";

      State.prototype.outputName = "";

      State.prototype.dataType = 0;

      State.prototype.dims = $util.emptyArray;

      State.prototype.initialState = $util.emptyArray;

      State.prototype.useSameBufferForInputOutput = false;

      State.prototype.useGrowableMemory = false;

      State.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.inputName != null && $Object.hasOwnProperty.call(message, "inputName") && message.inputName !== "")
          writer.uint32(/* id 1, wireType 2 =*/10).string(message.inputName);
        if (message.outputName != null && $Object.hasOwnProperty.call(message, "outputName") && message.outputName !== "")
          writer.uint32(/* id 2, wireType 2 =*/18).string(message.outputName);
        if (message.dataType != null && $Object.hasOwnProperty.call(message, "dataType") && message.dataType !== 0)
          writer.uint32(/* id 3, wireType 0 =*/24).int32(message.dataType);
        if (message.dims != null && message.dims.length)
          writer.uint32(/* id 4, wireType 2 =*/34).int64s(message.dims);
        if (message.initialState != null && message.initialState.length)
          for (let i = 0; i < message.initialState.length; ++i)
            $root.inference.ModelSequenceBatching.InitialState.encode(message.initialState[i], writer.uint32(/* id 5, wireType 2 =*/42).fork(), _depth + 1).ldelim();
        if (message.useSameBufferForInputOutput != null && $Object.hasOwnProperty.call(message, "useSameBufferForInputOutput") && message.useSameBufferForInputOutput !== false)
          writer.uint32(/* id 6, wireType 0 =*/48).bool(message.useSameBufferForInputOutput);
        if (message.useGrowableMemory != null && $Object.hasOwnProperty.call(message, "useGrowableMemory") && message.useGrowableMemory !== false)
          writer.uint32(/* id 7, wireType 0 =*/56).bool(message.useGrowableMemory);
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      State.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message, value;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.ModelSequenceBatching.State();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 2)
                break;
              if ((value = reader.stringVerify()).length)
                message.inputName = value;
              else
                delete message.inputName;
              continue;
            }
          case 2: {
              if (wireType !== 2)
                break;
              if ((value = reader.stringVerify()).length)
                message.outputName = value;
              else
                delete message.outputName;
              continue;
            }
          case 3: {
              if (wireType !== 0)
                break;
              if (value = reader.int32())
                message.dataType = value;
              else
                delete message.dataType;
              continue;
            }
          case 4: {
              if (wireType === 2) {
                if (!(message.dims && message.dims.length))
                  message.dims = [];
                reader.int64s(message.dims);
                continue;
              }
              if (wireType !== 0)
                break;
              if (!(message.dims && message.dims.length))
                message.dims = [];
              message.dims.push(reader.int64());
              continue;
            }
          case 5: {
              if (wireType !== 2)
                break;
              if (!(message.initialState && message.initialState.length))
                message.initialState = [];
              message.initialState.push($root.inference.ModelSequenceBatching.InitialState.decode(reader, reader.size(), $undefined, _depth + 1));
              continue;
            }
          case 6: {
              if (wireType !== 0)
                break;
              if (value = reader.bool())
                message.useSameBufferForInputOutput = value;
              else
                delete message.useSameBufferForInputOutput;
              continue;
            }
          case 7: {
              if (wireType !== 0)
                break;
              if (value = reader.bool())
                message.useGrowableMemory = value;
              else
                delete message.useGrowableMemory;
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      State.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.ModelSequenceBatching.State)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.ModelSequenceBatching.State: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.ModelSequenceBatching.State();
        if (object.inputName != null)
          if (typeof object.inputName !== "string" || object.inputName.length)
            message.inputName = $String(object.inputName);
        if (object.outputName != null)
          if (typeof object.outputName !== "string" || object.outputName.length)
            message.outputName = $String(object.outputName);
        if (object.dataType !== 0 && (typeof object.dataType !== "string" || $root.inference.DataType[object.dataType] !== 0))
          switch (object.dataType) {
          case "TYPE_INVALID":
          case 0:
            message.dataType = 0;
            break;
          case "TYPE_BOOL":
          case 1:
            message.dataType = 1;
            break;
          case "TYPE_UINT8":
          case 2:
            message.dataType = 2;
            break;
          case "TYPE_UINT16":
          case 3:
            message.dataType = 3;
            break;
          case "TYPE_UINT32":
          case 4:
            message.dataType = 4;
            break;
          case "TYPE_UINT64":
          case 5:
            message.dataType = 5;
            break;
          case "TYPE_INT8":
          case 6:
            message.dataType = 6;
            break;
          case "TYPE_INT16":
          case 7:
            message.dataType = 7;
            break;
          case "TYPE_INT32":
          case 8:
            message.dataType = 8;
            break;
          case "TYPE_INT64":
          case 9:
            message.dataType = 9;
            break;
          case "TYPE_FP16":
          case 10:
            message.dataType = 10;
            break;
          case "TYPE_FP32":
          case 11:
            message.dataType = 11;
            break;
          case "TYPE_FP64":
          case 12:
            message.dataType = 12;
            break;
          case "TYPE_STRING":
          case 13:
            message.dataType = 13;
            break;
          case "TYPE_BF16":
          case 14:
            message.dataType = 14;
            break;
          default:
            if (typeof object.dataType === "number" && (object.dataType | 0) === object.dataType)
              message.dataType = object.dataType;
          }
        if (object.dims) {
          if (!$Array.isArray(object.dims))
            throw $TypeError(".inference.ModelSequenceBatching.State.dims: array expected");
          message.dims = $Array(object.dims.length);
          for (let i = 0; i < object.dims.length; ++i)
            if ($util.Long)
              message.dims[i] = $util.Long.fromValue(object.dims[i], false);
            else if (typeof object.dims[i] === "string")
              message.dims[i] = $parseInt(object.dims[i], 10);
            else if (typeof object.dims[i] === "number")
              message.dims[i] = object.dims[i];
            else if (typeof object.dims[i] === "object")
              message.dims[i] = new $util.LongBits(object.dims[i].low >>> 0, object.dims[i].high >>> 0).toNumber();
        }
        if (object.initialState) {
          if (!$Array.isArray(object.initialState))
            throw $TypeError(".inference.ModelSequenceBatching.State.initialState: array expected");
          message.initialState = $Array(object.initialState.length);
          for (let i = 0; i < object.initialState.length; ++i) {
            if (!$util.isObject(object.initialState[i]))
              throw $TypeError(".inference.ModelSequenceBatching.State.initialState: object expected");
            message.initialState[i] = $root.inference.ModelSequenceBatching.InitialState.fromObject(object.initialState[i], _depth + 1);
          }
        }
        if (object.useSameBufferForInputOutput != null)
          if (object.useSameBufferForInputOutput)
            message.useSameBufferForInputOutput = $Boolean(object.useSameBufferForInputOutput);
        if (object.useGrowableMemory != null)
          if (object.useGrowableMemory)
            message.useGrowableMemory = $Boolean(object.useGrowableMemory);
        return message;
      };

      State.toObject = function (message, options, _depth) {
        if (!options)
          options = {};
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let object = {};
        if (options.arrays || options.defaults) {
          object.dims = [];
          object.initialState = [];
        }
        if (options.defaults) {
          object.inputName = "";
          object.outputName = "";
          object.dataType = options.enums === $String ? "TYPE_INVALID" : 0;
          object.useSameBufferForInputOutput = false;
          object.useGrowableMemory = false;
        }
        if (message.inputName != null && $Object.hasOwnProperty.call(message, "inputName"))
          object.inputName = message.inputName;
        if (message.outputName != null && $Object.hasOwnProperty.call(message, "outputName"))
          object.outputName = message.outputName;
        if (message.dataType != null && $Object.hasOwnProperty.call(message, "dataType"))
          object.dataType = options.enums === $String ? $root.inference.DataType[message.dataType] === $undefined ? message.dataType : $root.inference.DataType[message.dataType] : message.dataType;
        if (message.dims && message.dims.length) {
          object.dims = $Array(message.dims.length);
          for (let j = 0; j < message.dims.length; ++j)
            if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
              object.dims[j] = typeof message.dims[j] === "number" ? $BigInt(message.dims[j]) : $util.Long.fromBits(message.dims[j].low >>> 0, message.dims[j].high >>> 0, false).toBigInt();
            else if (typeof message.dims[j] === "number")
              object.dims[j] = options.longs === $String ? $String(message.dims[j]) : message.dims[j];
            else
              object.dims[j] = options.longs === $String ? $util.Long.prototype.toString.call(message.dims[j]) : options.longs === $Number ? new $util.LongBits(message.dims[j].low >>> 0, message.dims[j].high >>> 0).toNumber() : message.dims[j];
        }
        if (message.initialState && message.initialState.length) {
          object.initialState = $Array(message.initialState.length);
          for (let j = 0; j < message.initialState.length; ++j)
            object.initialState[j] = $root.inference.ModelSequenceBatching.InitialState.toObject(message.initialState[j], options, _depth + 1);
        }
        if (message.useSameBufferForInputOutput != null && $Object.hasOwnProperty.call(message, "useSameBufferForInputOutput"))
          object.useSameBufferForInputOutput = message.useSameBufferForInputOutput;
        if (message.useGrowableMemory != null && $Object.hasOwnProperty.call(message, "useGrowableMemory"))
          object.useGrowableMemory = message.useGrowableMemory;
        return object;
      };

      return State;
    })();

    ModelSequenceBatching.StrategyDirect = (function() {
      const StrategyDirect = function (properties) {
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      StrategyDirect.prototype.maxQueueDelayMicroseconds = 0;

      StrategyDirect.prototype.minimumSlotUtilization = 0;

      StrategyDirect.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.maxQueueDelayMicroseconds != null && $Object.hasOwnProperty.call(message, "maxQueueDelayMicroseconds") && (typeof message.maxQueueDelayMicroseconds === "object" ? message.maxQueueDelayMicroseconds.low || message.maxQueueDelayMicroseconds.high : message.maxQueueDelayMicroseconds !== 0))
          writer.uint32(/* id 1, wireType 0 =*/8).uint64(message.maxQueueDelayMicroseconds);
        if (message.minimumSlotUtilization != null && $Object.hasOwnProperty.call(message, "minimumSlotUtilization") && !$Object.is(message.minimumSlotUtilization, 0))
          writer.uint32(/* id 2, wireType 5 =*/21).float(message.minimumSlotUtilization);
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      StrategyDirect.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message, value;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.ModelSequenceBatching.StrategyDirect();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 0)
                break;
              if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
                message.maxQueueDelayMicroseconds = value;
              else
                delete message.maxQueueDelayMicroseconds;
              continue;
            }
          case 2: {
              if (wireType !== 5)
                break;
              if (!$Object.is(value = reader.float(), 0))
                message.minimumSlotUtilization = value;
              else
                delete message.minimumSlotUtilization;
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      StrategyDirect.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.ModelSequenceBatching.StrategyDirect)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.ModelSequenceBatching.StrategyDirect: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.ModelSequenceBatching.StrategyDirect();
        if (object.maxQueueDelayMicroseconds != null)
          if (typeof object.maxQueueDelayMicroseconds === "object" ? object.maxQueueDelayMicroseconds.low || object.maxQueueDelayMicroseconds.high : $Number(object.maxQueueDelayMicroseconds) !== 0)
            if ($util.Long)
              message.maxQueueDelayMicroseconds = $util.Long.fromValue(object.maxQueueDelayMicroseconds, true);
            else if (typeof object.maxQueueDelayMicroseconds === "string")
              message.maxQueueDelayMicroseconds = $parseInt(object.maxQueueDelayMicroseconds, 10);
            else if (typeof object.maxQueueDelayMicroseconds === "number")
              message.maxQueueDelayMicroseconds = object.maxQueueDelayMicroseconds;
            else if (typeof object.maxQueueDelayMicroseconds === "object")
              message.maxQueueDelayMicroseconds = new $util.LongBits(object.maxQueueDelayMicroseconds.low >>> 0, object.maxQueueDelayMicroseconds.high >>> 0).toNumber(true);
        if (object.minimumSlotUtilization != null)
          if (!$Object.is($Number(object.minimumSlotUtilization), 0))
            message.minimumSlotUtilization = $Number(object.minimumSlotUtilization);
        return message;
      };

      StrategyDirect.toObject = function (message, options, _depth) {
        if (!options)
          options = {};
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let object = {};
        if (options.defaults) {
          if ($util.Long) {
            let long = new $util.Long(0, 0, true);
            object.maxQueueDelayMicroseconds = options.longs === $String ? long.toString() : options.longs === $Number ? long.toNumber() : typeof $BigInt !== "undefined" && options.longs === $BigInt ? long.toBigInt() : long;
          } else
            object.maxQueueDelayMicroseconds = options.longs === $String ? "0" : typeof $BigInt !== "undefined" && options.longs === $BigInt ? $BigInt("0") : 0;
          object.minimumSlotUtilization = 0;
        }
        if (message.maxQueueDelayMicroseconds != null && $Object.hasOwnProperty.call(message, "maxQueueDelayMicroseconds"))
          if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
            object.maxQueueDelayMicroseconds = typeof message.maxQueueDelayMicroseconds === "number" ? $BigInt(message.maxQueueDelayMicroseconds) : $util.Long.fromBits(message.maxQueueDelayMicroseconds.low >>> 0, message.maxQueueDelayMicroseconds.high >>> 0, true).toBigInt();
          else if (typeof message.maxQueueDelayMicroseconds === "number")
            object.maxQueueDelayMicroseconds = options.longs === $String ? $String(message.maxQueueDelayMicroseconds) : message.maxQueueDelayMicroseconds;
          else
            object.maxQueueDelayMicroseconds = options.longs === $String ? $util.Long.prototype.toString.call(message.maxQueueDelayMicroseconds) : options.longs === $Number ? new $util.LongBits(message.maxQueueDelayMicroseconds.low >>> 0, message.maxQueueDelayMicroseconds.high >>> 0).toNumber(true) : message.maxQueueDelayMicroseconds;
        if (message.minimumSlotUtilization != null && $Object.hasOwnProperty.call(message, "minimumSlotUtilization"))
          object.minimumSlotUtilization = options.json && !$isFinite(message.minimumSlotUtilization) ? $String(message.minimumSlotUtilization) : message.minimumSlotUtilization;
        return object;
      };

      return StrategyDirect;
    })();

    ModelSequenceBatching.StrategyOldest = (function() {
      const StrategyOldest = function (properties) {
        this.preferredBatchSize = [];
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      StrategyOldest.prototype.maxCandidateSequences = 0;

      StrategyOldest.prototype.preferredBatchSize = $util.emptyArray;

      StrategyOldest.prototype.maxQueueDelayMicroseconds = 0;

      StrategyOldest.prototype.preserveOrdering = false;

      StrategyOldest.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.maxCandidateSequences != null && $Object.hasOwnProperty.call(message, "maxCandidateSequences") && message.maxCandidateSequences !== 0)
          writer.uint32(/* id 1, wireType 0 =*/8).int32(message.maxCandidateSequences);
        if (message.preferredBatchSize != null && message.preferredBatchSize.length)
          writer.uint32(/* id 2, wireType 2 =*/18).int32s(message.preferredBatchSize);
        if (message.maxQueueDelayMicroseconds != null && $Object.hasOwnProperty.call(message, "maxQueueDelayMicroseconds") && (typeof message.maxQueueDelayMicroseconds === "object" ? message.maxQueueDelayMicroseconds.low || message.maxQueueDelayMicroseconds.high : message.maxQueueDelayMicroseconds !== 0))
          writer.uint32(/* id 3, wireType 0 =*/24).uint64(message.maxQueueDelayMicroseconds);
        if (message.preserveOrdering != null && $Object.hasOwnProperty.call(message, "preserveOrdering") && message.preserveOrdering !== false)
          writer.uint32(/* id 4, wireType 0 =*/32).bool(message.preserveOrdering);
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      StrategyOldest.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message, value;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.ModelSequenceBatching.StrategyOldest();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 0)
                break;
              if (value = reader.int32())
                message.maxCandidateSequences = value;
              else
                delete message.maxCandidateSequences;
              continue;
            }
          case 2: {
              if (wireType === 2) {
                if (!(message.preferredBatchSize && message.preferredBatchSize.length))
                  message.preferredBatchSize = [];
                reader.int32s(message.preferredBatchSize);
                continue;
              }
              if (wireType !== 0)
                break;
              if (!(message.preferredBatchSize && message.preferredBatchSize.length))
                message.preferredBatchSize = [];
              message.preferredBatchSize.push(reader.int32());
              continue;
            }
          case 3: {
              if (wireType !== 0)
                break;
              if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
                message.maxQueueDelayMicroseconds = value;
              else
                delete message.maxQueueDelayMicroseconds;
              continue;
            }
          case 4: {
              if (wireType !== 0)
                break;
              if (value = reader.bool())
                message.preserveOrdering = value;
              else
                delete message.preserveOrdering;
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      StrategyOldest.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.ModelSequenceBatching.StrategyOldest)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.ModelSequenceBatching.StrategyOldest: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.ModelSequenceBatching.StrategyOldest();
        if (object.maxCandidateSequences != null)
          if ($Number(object.maxCandidateSequences) !== 0)
            message.maxCandidateSequences = object.maxCandidateSequences | 0;
        if (object.preferredBatchSize) {
          if (!$Array.isArray(object.preferredBatchSize))
            throw $TypeError(".inference.ModelSequenceBatching.StrategyOldest.preferredBatchSize: array expected");
          message.preferredBatchSize = $Array(object.preferredBatchSize.length);
          for (let i = 0; i < object.preferredBatchSize.length; ++i)
            message.preferredBatchSize[i] = object.preferredBatchSize[i] | 0;
        }
        if (object.maxQueueDelayMicroseconds != null)
          if (typeof object.maxQueueDelayMicroseconds === "object" ? object.maxQueueDelayMicroseconds.low || object.maxQueueDelayMicroseconds.high : $Number(object.maxQueueDelayMicroseconds) !== 0)
            if ($util.Long)
              message.maxQueueDelayMicroseconds = $util.Long.fromValue(object.maxQueueDelayMicroseconds, true);
            else if (typeof object.maxQueueDelayMicroseconds === "string")
              message.maxQueueDelayMicroseconds = $parseInt(object.maxQueueDelayMicroseconds, 10);
            else if (typeof object.maxQueueDelayMicroseconds === "number")
              message.maxQueueDelayMicroseconds = object.maxQueueDelayMicroseconds;
            else if (typeof object.maxQueueDelayMicroseconds === "object")
              message.maxQueueDelayMicroseconds = new $util.LongBits(object.maxQueueDelayMicroseconds.low >>> 0, object.maxQueueDelayMicroseconds.high >>> 0).toNumber(true);
        if (object.preserveOrdering != null)
          if (object.preserveOrdering)
            message.preserveOrdering = $Boolean(object.preserveOrdering);
        return message;
      };

      StrategyOldest.toObject = function (message, options, _depth) {
        if (!options)
          options = {};
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let object = {};
        if (options.arrays || options.defaults)
          object.preferredBatchSize = [];
        if (options.defaults) {
          object.maxCandidateSequences = 0;
          if ($util.Long) {
            let long = new $util.Long(0, 0, true);
            object.maxQueueDelayMicroseconds = options.longs === $String ? long.toString() : options.longs === $Number ? long.toNumber() : typeof $BigInt !== "undefined" && options.longs === $BigInt ? long.toBigInt() : long;
          } else
            object.maxQueueDelayMicroseconds = options.longs === $String ? "0" : typeof $BigInt !== "undefined" && options.longs === $BigInt ? $BigInt("0") : 0;
          object.preserveOrdering = false;
        }
        if (message.maxCandidateSequences != null && $Object.hasOwnProperty.call(message, "maxCandidateSequences"))
          object.maxCandidateSequences = message.maxCandidateSequences;
        if (message.preferredBatchSize && message.preferredBatchSize.length) {
          object.preferredBatchSize = $Array(message.preferredBatchSize.length);
          for (let j = 0; j < message.preferredBatchSize.length; ++j)
            object.preferredBatchSize[j] = message.preferredBatchSize[j];
        }
        if (message.maxQueueDelayMicroseconds != null && $Object.hasOwnProperty.call(message, "maxQueueDelayMicroseconds"))
          if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
            object.maxQueueDelayMicroseconds = typeof message.maxQueueDelayMicroseconds === "number" ? $BigInt(message.maxQueueDelayMicroseconds) : $util.Long.fromBits(message.maxQueueDelayMicroseconds.low >>> 0, message.maxQueueDelayMicroseconds.high >>> 0, true).toBigInt();
          else if (typeof message.maxQueueDelayMicroseconds === "number")
            object.maxQueueDelayMicroseconds = options.longs === $String ? $String(message.maxQueueDelayMicroseconds) : message.maxQueueDelayMicroseconds;
          else
            object.maxQueueDelayMicroseconds = options.longs === $String ? $util.Long.prototype.toString.call(message.maxQueueDelayMicroseconds) : options.longs === $Number ? new $util.LongBits(message.maxQueueDelayMicroseconds.low >>> 0, message.maxQueueDelayMicroseconds.high >>> 0).toNumber(true) : message.maxQueueDelayMicroseconds;
        if (message.preserveOrdering != null && $Object.hasOwnProperty.call(message, "preserveOrdering"))
          object.preserveOrdering = message.preserveOrdering;
        return object;
      };

      return StrategyOldest;
    })();

    return ModelSequenceBatching;
  })();

  inference.ModelEnsembling = (function() {
    const ModelEnsembling = function (properties) {
      this.step = [];
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelEnsembling.prototype.step = $util.emptyArray;

    ModelEnsembling.prototype.maxInflightRequests = 0;

    ModelEnsembling.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.step != null && message.step.length)
        for (let i = 0; i < message.step.length; ++i)
          $root.inference.ModelEnsembling.Step.encode(message.step[i], writer.uint32(/* id 1, wireType 2 =*/10).fork(), _depth + 1).ldelim();
      if (message.maxInflightRequests != null && $Object.hasOwnProperty.call(message, "maxInflightRequests") && message.maxInflightRequests !== 0)
        writer.uint32(/* id 2, wireType 0 =*/16).uint32(message.maxInflightRequests);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelEnsembling.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelEnsembling();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if (!(message.step && message.step.length))
              message.step = [];
            message.step.push($root.inference.ModelEnsembling.Step.decode(reader, reader.size(), $undefined, _depth + 1));
            continue;
          }
        case 2: {
            if (wireType !== 0)
              break;
            if (value = reader.uint32())
              message.maxInflightRequests = value;
            else
              delete message.maxInflightRequests;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelEnsembling.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelEnsembling)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelEnsembling: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelEnsembling();
      if (object.step) {
        if (!$Array.isArray(object.step))
          throw $TypeError(".inference.ModelEnsembling.step: array expected");
        message.step = $Array(object.step.length);
        for (let i = 0; i < object.step.length; ++i) {
          if (!$util.isObject(object.step[i]))
            throw $TypeError(".inference.ModelEnsembling.step: object expected");
          message.step[i] = $root.inference.ModelEnsembling.Step.fromObject(object.step[i], _depth + 1);
        }
      }
      if (object.maxInflightRequests != null)
        if ($Number(object.maxInflightRequests) !== 0)
          message.maxInflightRequests = object.maxInflightRequests >>> 0;
      return message;
    };

    ModelEnsembling.toObject = function (message, options, _depth) {
      if (!options)
        options = {};
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let object = {};
      if (options.arrays || options.defaults)
        object.step = [];
      if (options.defaults)
        object.maxInflightRequests = 0;
      if (message.step && message.step.length) {
        object.step = $Array(message.step.length);
        for (let j = 0; j < message.step.length; ++j)
          object.step[j] = $root.inference.ModelEnsembling.Step.toObject(message.step[j], options, _depth + 1);
      }
      if (message.maxInflightRequests != null && $Object.hasOwnProperty.call(message, "maxInflightRequests"))
        object.maxInflightRequests = message.maxInflightRequests;
      return object;
    };

    ModelEnsembling.Step = (function() {
      const Step = function (properties) {
        this.inputMap = {};
        this.outputMap = {};
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      Step.prototype.modelName = "";

      Step.prototype.modelVersion = 0;

      Step.prototype.inputMap = $util.emptyObject;

      Step.prototype.outputMap = $util.emptyObject;

      Step.prototype.modelNamespace = "";

      Step.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.modelName != null && $Object.hasOwnProperty.call(message, "modelName") && message.modelName !== "")
          writer.uint32(/* id 1, wireType 2 =*/10).string(message.modelName);
        if (message.modelVersion != null && $Object.hasOwnProperty.call(message, "modelVersion") && (typeof message.modelVersion === "object" ? message.modelVersion.low || message.modelVersion.high : message.modelVersion !== 0))
          writer.uint32(/* id 2, wireType 0 =*/16).int64(message.modelVersion);
        if (message.inputMap != null && $Object.hasOwnProperty.call(message, "inputMap"))
          for (let keys = $Object.keys(message.inputMap), i = 0; i < keys.length; ++i)
            writer.uint32(/* id 3, wireType 2 =*/26).fork().uint32(/* id 1, wireType 2 =*/10).string(keys[i]).uint32(/* id 2, wireType 2 =*/18).string(message.inputMap[keys[i]]).ldelim();
        if (message.outputMap != null && $Object.hasOwnProperty.call(message, "outputMap"))
          for (let keys = $Object.keys(message.outputMap), i = 0; i < keys.length; ++i)
            writer.uint32(/* id 4, wireType 2 =*/34).fork().uint32(/* id 1, wireType 2 =*/10).string(keys[i]).uint32(/* id 2, wireType 2 =*/18).string(message.outputMap[keys[i]]).ldelim();
        if (message.modelNamespace != null && $Object.hasOwnProperty.call(message, "modelNamespace") && message.modelNamespace !== "")
          writer.uint32(/* id 5, wireType 2 =*/42).string(message.modelNamespace);
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      Step.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message, key, value;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.ModelEnsembling.Step();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 2)
                break;
              if ((value = reader.stringVerify()).length)
                message.modelName = value;
              else
                delete message.modelName;
              continue;
            }
          case 2: {
              if (wireType !== 0)
                break;
              if (typeof (value = reader.int64()) === "object" ? value.low || value.high : value !== 0)
                message.modelVersion = value;
              else
                delete message.modelVersion;
              continue;
            }
          case 3: {
              if (wireType !== 2)
                break;
              if (message.inputMap === $util.emptyObject)
                message.inputMap = {};
              let end2 = reader.size() + reader.pos;
              if (end2 > reader.len)
                throw $RangeError("index out of range");
              reader.len = end2;
              key = "";
              value = "";
              while (reader.pos < end2) {
                let tag2 = reader.tag();
                wireType = tag2 & 7;
                switch (tag2 >>>= 3) {
                case 1:
                  if (wireType !== 2)
                    break;
                  key = reader.stringVerify();
                  continue;
                case 2:
                  if (wireType !== 2)
                    break;
                  value = reader.stringVerify();
                  continue;
                }
                reader.skipType(wireType, _depth, tag2);
              }
              if (reader.pos !== end2)
                throw $RangeError("index out of range");
              reader.len = end;
              if (key === "__proto__")
                $util.makeProp(message.inputMap, key);
              message.inputMap[key] = value;
              continue;
            }
          case 4: {
              if (wireType !== 2)
                break;
              if (message.outputMap === $util.emptyObject)
                message.outputMap = {};
              let end2 = reader.size() + reader.pos;
              if (end2 > reader.len)
                throw $RangeError("index out of range");
              reader.len = end2;
              key = "";
              value = "";
              while (reader.pos < end2) {
                let tag2 = reader.tag();
                wireType = tag2 & 7;
                switch (tag2 >>>= 3) {
                case 1:
                  if (wireType !== 2)
                    break;
                  key = reader.stringVerify();
                  continue;
                case 2:
                  if (wireType !== 2)
                    break;
                  value = reader.stringVerify();
                  continue;
                }
                reader.skipType(wireType, _depth, tag2);
              }
              if (reader.pos !== end2)
                throw $RangeError("index out of range");
              reader.len = end;
              if (key === "__proto__")
                $util.makeProp(message.outputMap, key);
              message.outputMap[key] = value;
              continue;
            }
          case 5: {
              if (wireType !== 2)
                break;
              if ((value = reader.stringVerify()).length)
                message.modelNamespace = value;
              else
                delete message.modelNamespace;
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      Step.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.ModelEnsembling.Step)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.ModelEnsembling.Step: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.ModelEnsembling.Step();
        if (object.modelName != null)
          if (typeof object.modelName !== "string" || object.modelName.length)
            message.modelName = $String(object.modelName);
        if (object.modelVersion != null)
          if (typeof object.modelVersion === "object" ? object.modelVersion.low || object.modelVersion.high : $Number(object.modelVersion) !== 0)
            if ($util.Long)
              message.modelVersion = $util.Long.fromValue(object.modelVersion, false);
            else if (typeof object.modelVersion === "string")
              message.modelVersion = $parseInt(object.modelVersion, 10);
            else if (typeof object.modelVersion === "number")
              message.modelVersion = object.modelVersion;
            else if (typeof object.modelVersion === "object")
              message.modelVersion = new $util.LongBits(object.modelVersion.low >>> 0, object.modelVersion.high >>> 0).toNumber();
        if (object.inputMap) {
          if (!$util.isObject(object.inputMap))
            throw $TypeError(".inference.ModelEnsembling.Step.inputMap: object expected");
          message.inputMap = {};
          for (let keys = $Object.keys(object.inputMap), i = 0; i < keys.length; ++i) {
            if (keys[i] === "__proto__")
              $util.makeProp(message.inputMap, keys[i]);
            message.inputMap[keys[i]] = $String(object.inputMap[keys[i]]);
          }
        }
        if (object.outputMap) {
          if (!$util.isObject(object.outputMap))
            throw $TypeError(".inference.ModelEnsembling.Step.outputMap: object expected");
          message.outputMap = {};
          for (let keys = $Object.keys(object.outputMap), i = 0; i < keys.length; ++i) {
            if (keys[i] === "__proto__")
              $util.makeProp(message.outputMap, keys[i]);
            message.outputMap[keys[i]] = $String(object.outputMap[keys[i]]);
          }
        }
        if (object.modelNamespace != null)
          if (typeof object.modelNamespace !== "string" || object.modelNamespace.length)
            message.modelNamespace = $String(object.modelNamespace);
        return message;
      };

      Step.toObject = function (message, options, _depth) {
        if (!options)
          options = {};
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let object = {};
        if (options.objects || options.defaults) {
          object.inputMap = {};
          object.outputMap = {};
        }
        if (options.defaults) {
          object.modelName = "";
          if ($util.Long) {
            let long = new $util.Long(0, 0, false);
            object.modelVersion = options.longs === $String ? long.toString() : options.longs === $Number ? long.toNumber() : typeof $BigInt !== "undefined" && options.longs === $BigInt ? long.toBigInt() : long;
          } else
            object.modelVersion = options.longs === $String ? "0" : typeof $BigInt !== "undefined" && options.longs === $BigInt ? $BigInt("0") : 0;
          object.modelNamespace = "";
        }
        if (message.modelName != null && $Object.hasOwnProperty.call(message, "modelName"))
          object.modelName = message.modelName;
        if (message.modelVersion != null && $Object.hasOwnProperty.call(message, "modelVersion"))
          if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
            object.modelVersion = typeof message.modelVersion === "number" ? $BigInt(message.modelVersion) : $util.Long.fromBits(message.modelVersion.low >>> 0, message.modelVersion.high >>> 0, false).toBigInt();
          else if (typeof message.modelVersion === "number")
            object.modelVersion = options.longs === $String ? $String(message.modelVersion) : message.modelVersion;
          else
            object.modelVersion = options.longs === $String ? $util.Long.prototype.toString.call(message.modelVersion) : options.longs === $Number ? new $util.LongBits(message.modelVersion.low >>> 0, message.modelVersion.high >>> 0).toNumber() : message.modelVersion;
        let keys2;
        if (message.inputMap && (keys2 = $Object.keys(message.inputMap)).length) {
          object.inputMap = {};
          for (let j = 0; j < keys2.length; ++j) {
            if (keys2[j] === "__proto__")
              $util.makeProp(object.inputMap, keys2[j]);
            object.inputMap[keys2[j]] = message.inputMap[keys2[j]];
          }
        }
        if (message.outputMap && (keys2 = $Object.keys(message.outputMap)).length) {
          object.outputMap = {};
          for (let j = 0; j < keys2.length; ++j) {
            if (keys2[j] === "__proto__")
              $util.makeProp(object.outputMap, keys2[j]);
            object.outputMap[keys2[j]] = message.outputMap[keys2[j]];
          }
        }
        if (message.modelNamespace != null && $Object.hasOwnProperty.call(message, "modelNamespace"))
          object.modelNamespace = message.modelNamespace;
        return object;
      };

      return Step;
    })();

    return ModelEnsembling;
  })();

  inference.ModelParameter = (function() {
    const ModelParameter = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelParameter.prototype.stringValue = "";

    ModelParameter.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.stringValue != null && $Object.hasOwnProperty.call(message, "stringValue") && message.stringValue !== "")
        writer.uint32(/* id 1, wireType 2 =*/10).string(message.stringValue);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelParameter.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelParameter();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.stringValue = value;
            else
              delete message.stringValue;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelParameter.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelParameter)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelParameter: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelParameter();
      if (object.stringValue != null)
        if (typeof object.stringValue !== "string" || object.stringValue.length)
          message.stringValue = $String(object.stringValue);
      return message;
    };

    ModelParameter.toObject = function (message, options, _depth) {
      if (!options)
        options = {};
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let object = {};
      if (options.defaults)
        object.stringValue = "";
      if (message.stringValue != null && $Object.hasOwnProperty.call(message, "stringValue"))
        object.stringValue = message.stringValue;
      return object;
    };

    return ModelParameter;
  })();

  inference.ModelWarmup = (function() {
    const ModelWarmup = function (properties) {
      this.inputs = {};
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelWarmup.prototype.name = "";

    ModelWarmup.prototype.batchSize = 0;

    ModelWarmup.prototype.inputs = $util.emptyObject;

    ModelWarmup.prototype.count = 0;

    ModelWarmup.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
        writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
      if (message.batchSize != null && $Object.hasOwnProperty.call(message, "batchSize") && message.batchSize !== 0)
        writer.uint32(/* id 2, wireType 0 =*/16).uint32(message.batchSize);
      if (message.inputs != null && $Object.hasOwnProperty.call(message, "inputs"))
        for (let keys = $Object.keys(message.inputs), i = 0; i < keys.length; ++i) {
          writer.uint32(/* id 3, wireType 2 =*/26).fork().uint32(/* id 1, wireType 2 =*/10).string(keys[i]);
          $root.inference.ModelWarmup.Input.encode(message.inputs[keys[i]], writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim().ldelim();
        }
      if (message.count != null && $Object.hasOwnProperty.call(message, "count") && message.count !== 0)
        writer.uint32(/* id 4, wireType 0 =*/32).uint32(message.count);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelWarmup.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, key, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelWarmup();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.name = value;
            else
              delete message.name;
            continue;
          }
        case 2: {
            if (wireType !== 0)
              break;
            if (value = reader.uint32())
              message.batchSize = value;
            else
              delete message.batchSize;
            continue;
          }
        case 3: {
            if (wireType !== 2)
              break;
            if (message.inputs === $util.emptyObject)
              message.inputs = {};
            let end2 = reader.size() + reader.pos;
            if (end2 > reader.len)
              throw $RangeError("index out of range");
            reader.len = end2;
            key = "";
            value = null;
            while (reader.pos < end2) {
              let tag2 = reader.tag();
              wireType = tag2 & 7;
              switch (tag2 >>>= 3) {
              case 1:
                if (wireType !== 2)
                  break;
                key = reader.stringVerify();
                continue;
              case 2:
                if (wireType !== 2)
                  break;
                value = $root.inference.ModelWarmup.Input.decode(reader, reader.size(), $undefined, _depth + 1, value);
                continue;
              }
              reader.skipType(wireType, _depth, tag2);
            }
            if (reader.pos !== end2)
              throw $RangeError("index out of range");
            reader.len = end;
            if (key === "__proto__")
              $util.makeProp(message.inputs, key);
            message.inputs[key] = value || new $root.inference.ModelWarmup.Input();
            continue;
          }
        case 4: {
            if (wireType !== 0)
              break;
            if (value = reader.uint32())
              message.count = value;
            else
              delete message.count;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelWarmup.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelWarmup)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelWarmup: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelWarmup();
      if (object.name != null)
        if (typeof object.name !== "string" || object.name.length)
          message.name = $String(object.name);
      if (object.batchSize != null)
        if ($Number(object.batchSize) !== 0)
          message.batchSize = object.batchSize >>> 0;
      if (object.inputs) {
        if (!$util.isObject(object.inputs))
          throw $TypeError(".inference.ModelWarmup.inputs: object expected");
        message.inputs = {};
        for (let keys = $Object.keys(object.inputs), i = 0; i < keys.length; ++i) {
          if (keys[i] === "__proto__")
            $util.makeProp(message.inputs, keys[i]);
          if (!$util.isObject(object.inputs[keys[i]]))
            throw $TypeError(".inference.ModelWarmup.inputs: object expected");
          message.inputs[keys[i]] = $root.inference.ModelWarmup.Input.fromObject(object.inputs[keys[i]], _depth + 1);
        }
      }
      if (object.count != null)
        if ($Number(object.count) !== 0)
          message.count = object.count >>> 0;
      return message;
    };

    ModelWarmup.toObject = function (message, options, _depth) {
      if (!options)
        options = {};
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let object = {};
      if (options.objects || options.defaults)
        object.inputs = {};
      if (options.defaults) {
        object.name = "";
        object.batchSize = 0;
        object.count = 0;
      }
      if (message.name != null && $Object.hasOwnProperty.call(message, "name"))
        object.name = message.name;
      if (message.batchSize != null && $Object.hasOwnProperty.call(message, "batchSize"))
        object.batchSize = message.batchSize;
      let keys2;
      if (message.inputs && (keys2 = $Object.keys(message.inputs)).length) {
        object.inputs = {};
        for (let j = 0; j < keys2.length; ++j) {
          if (keys2[j] === "__proto__")
            $util.makeProp(object.inputs, keys2[j]);
          object.inputs[keys2[j]] = $root.inference.ModelWarmup.Input.toObject(message.inputs[keys2[j]], options, _depth + 1);
        }
      }
      if (message.count != null && $Object.hasOwnProperty.call(message, "count"))
        object.count = message.count;
      return object;
    };

    ModelWarmup.Input = (function() {
      const Input = function (properties) {
        this.dims = [];
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      Input.prototype.dataType = 0;

      Input.prototype.dims = $util.emptyArray;

      Input.prototype.zeroData = null;

      Input.prototype.randomData = null;

      Input.prototype.inputDataFile = null;

      // OneOf field names bound to virtual getters and setters
      let $oneOfFields;

      $Object.defineProperty(Input.prototype, "inputDataType", {
        get: $util.oneOfGetter($oneOfFields = ["zeroData", "randomData", "inputDataFile"]),
        set: $util.oneOfSetter($oneOfFields)
      });

      Input.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.dataType != null && $Object.hasOwnProperty.call(message, "dataType") && message.dataType !== 0)
          writer.uint32(/* id 1, wireType 0 =*/8).int32(message.dataType);
        if (message.dims != null && message.dims.length)
          writer.uint32(/* id 2, wireType 2 =*/18).int64s(message.dims);
        if (message.zeroData != null && $Object.hasOwnProperty.call(message, "zeroData"))
          writer.uint32(/* id 3, wireType 0 =*/24).bool(message.zeroData);
        if (message.randomData != null && $Object.hasOwnProperty.call(message, "randomData"))
          writer.uint32(/* id 4, wireType 0 =*/32).bool(message.randomData);
        if (message.inputDataFile != null && $Object.hasOwnProperty.call(message, "inputDataFile"))
          writer.uint32(/* id 5, wireType 2 =*/42).string(message.inputDataFile);
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      Input.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message, value;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.ModelWarmup.Input();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 0)
                break;
              if (value = reader.int32())
                message.dataType = value;
              else
                delete message.dataType;
              continue;
            }
          case 2: {
              if (wireType === 2) {
                if (!(message.dims && message.dims.length))
                  message.dims = [];
                reader.int64s(message.dims);
                continue;
              }
              if (wireType !== 0)
                break;
              if (!(message.dims && message.dims.length))
                message.dims = [];
              message.dims.push(reader.int64());
              continue;
            }
          case 3: {
              if (wireType !== 0)
                break;
              message.zeroData = reader.bool();
              message.inputDataType = "zeroData";
              continue;
            }
          case 4: {
              if (wireType !== 0)
                break;
              message.randomData = reader.bool();
              message.inputDataType = "randomData";
              continue;
            }
          case 5: {
              if (wireType !== 2)
                break;
              message.inputDataFile = reader.stringVerify();
              message.inputDataType = "inputDataFile";
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      Input.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.ModelWarmup.Input)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.ModelWarmup.Input: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.ModelWarmup.Input();
        if (object.dataType !== 0 && (typeof object.dataType !== "string" || $root.inference.DataType[object.dataType] !== 0))
          switch (object.dataType) {
          case "TYPE_INVALID":
          case 0:
            message.dataType = 0;
            break;
          case "TYPE_BOOL":
          case 1:
            message.dataType = 1;
            break;
          case "TYPE_UINT8":
          case 2:
            message.dataType = 2;
            break;
          case "TYPE_UINT16":
          case 3:
            message.dataType = 3;
            break;
          case "TYPE_UINT32":
          case 4:
            message.dataType = 4;
            break;
          case "TYPE_UINT64":
          case 5:
            message.dataType = 5;
            break;
          case "TYPE_INT8":
          case 6:
            message.dataType = 6;
            break;
          case "TYPE_INT16":
          case 7:
            message.dataType = 7;
            break;
          case "TYPE_INT32":
          case 8:
            message.dataType = 8;
            break;
          case "TYPE_INT64":
          case 9:
            message.dataType = 9;
            break;
          case "TYPE_FP16":
          case 10:
            message.dataType = 10;
            break;
          case "TYPE_FP32":
          case 11:
            message.dataType = 11;
            break;
          case "TYPE_FP64":
          case 12:
            message.dataType = 12;
            break;
          case "TYPE_STRING":
          case 13:
            message.dataType = 13;
            break;
          case "TYPE_BF16":
          case 14:
            message.dataType = 14;
            break;
          default:
            if (typeof object.dataType === "number" && (object.dataType | 0) === object.dataType)
              message.dataType = object.dataType;
          }
        if (object.dims) {
          if (!$Array.isArray(object.dims))
            throw $TypeError(".inference.ModelWarmup.Input.dims: array expected");
          message.dims = $Array(object.dims.length);
          for (let i = 0; i < object.dims.length; ++i)
            if ($util.Long)
              message.dims[i] = $util.Long.fromValue(object.dims[i], false);
            else if (typeof object.dims[i] === "string")
              message.dims[i] = $parseInt(object.dims[i], 10);
            else if (typeof object.dims[i] === "number")
              message.dims[i] = object.dims[i];
            else if (typeof object.dims[i] === "object")
              message.dims[i] = new $util.LongBits(object.dims[i].low >>> 0, object.dims[i].high >>> 0).toNumber();
        }
        if (object.zeroData != null)
          message.zeroData = $Boolean(object.zeroData);
        if (object.randomData != null)
          message.randomData = $Boolean(object.randomData);
        if (object.inputDataFile != null)
          message.inputDataFile = $String(object.inputDataFile);
        return message;
      };

      Input.toObject = function (message, options, _depth) {
        if (!options)
          options = {};
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let object = {};
        if (options.arrays || options.defaults)
          object.dims = [];
        if (options.defaults)
          object.dataType = options.enums === $String ? "TYPE_INVALID" : 0;
        if (message.dataType != null && $Object.hasOwnProperty.call(message, "dataType"))
          object.dataType = options.enums === $String ? $root.inference.DataType[message.dataType] === $undefined ? message.dataType : $root.inference.DataType[message.dataType] : message.dataType;
        if (message.dims && message.dims.length) {
          object.dims = $Array(message.dims.length);
          for (let j = 0; j < message.dims.length; ++j)
            if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
              object.dims[j] = typeof message.dims[j] === "number" ? $BigInt(message.dims[j]) : $util.Long.fromBits(message.dims[j].low >>> 0, message.dims[j].high >>> 0, false).toBigInt();
            else if (typeof message.dims[j] === "number")
              object.dims[j] = options.longs === $String ? $String(message.dims[j]) : message.dims[j];
            else
              object.dims[j] = options.longs === $String ? $util.Long.prototype.toString.call(message.dims[j]) : options.longs === $Number ? new $util.LongBits(message.dims[j].low >>> 0, message.dims[j].high >>> 0).toNumber() : message.dims[j];
        }
        if (message.zeroData != null && $Object.hasOwnProperty.call(message, "zeroData")) {
          object.zeroData = message.zeroData;
          if (options.oneofs)
            object.inputDataType = "zeroData";
        }
        if (message.randomData != null && $Object.hasOwnProperty.call(message, "randomData")) {
          object.randomData = message.randomData;
          if (options.oneofs)
            object.inputDataType = "randomData";
        }
        if (message.inputDataFile != null && $Object.hasOwnProperty.call(message, "inputDataFile")) {
          object.inputDataFile = message.inputDataFile;
          if (options.oneofs)
            object.inputDataType = "inputDataFile";
        }
        return object;
      };

      return Input;
    })();

    return ModelWarmup;
  })();

  inference.ModelOperations = (function() {
    const ModelOperations = function (properties) {
      this.opLibraryFilename = [];
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelOperations.prototype.opLibraryFilename = $util.emptyArray;

    ModelOperations.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.opLibraryFilename != null && message.opLibraryFilename.length)
        for (let i = 0; i < message.opLibraryFilename.length; ++i)
          writer.uint32(/* id 1, wireType 2 =*/10).string(message.opLibraryFilename[i]);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelOperations.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelOperations();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if (!(message.opLibraryFilename && message.opLibraryFilename.length))
              message.opLibraryFilename = [];
            message.opLibraryFilename.push(reader.stringVerify());
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelOperations.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelOperations)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelOperations: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelOperations();
      if (object.opLibraryFilename) {
        if (!$Array.isArray(object.opLibraryFilename))
          throw $TypeError(".inference.ModelOperations.opLibraryFilename: array expected");
        message.opLibraryFilename = $Array(object.opLibraryFilename.length);
        for (let i = 0; i < object.opLibraryFilename.length; ++i)
          message.opLibraryFilename[i] = $String(object.opLibraryFilename[i]);
      }
      return message;
    };

    ModelOperations.toObject = function (message, options, _depth) {
      if (!options)
        options = {};
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let object = {};
      if (options.arrays || options.defaults)
        object.opLibraryFilename = [];
      if (message.opLibraryFilename && message.opLibraryFilename.length) {
        object.opLibraryFilename = $Array(message.opLibraryFilename.length);
        for (let j = 0; j < message.opLibraryFilename.length; ++j)
          object.opLibraryFilename[j] = message.opLibraryFilename[j];
      }
      return object;
    };

    return ModelOperations;
  })();

  inference.ModelTransactionPolicy = (function() {
    const ModelTransactionPolicy = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelTransactionPolicy.prototype.decoupled = false;

    ModelTransactionPolicy.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.decoupled != null && $Object.hasOwnProperty.call(message, "decoupled") && message.decoupled !== false)
        writer.uint32(/* id 1, wireType 0 =*/8).bool(message.decoupled);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelTransactionPolicy.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelTransactionPolicy();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 0)
              break;
            if (value = reader.bool())
              message.decoupled = value;
            else
              delete message.decoupled;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelTransactionPolicy.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelTransactionPolicy)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelTransactionPolicy: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelTransactionPolicy();
      if (object.decoupled != null)
        if (object.decoupled)
          message.decoupled = $Boolean(object.decoupled);
      return message;
    };

    ModelTransactionPolicy.toObject = function (message, options, _depth) {
      if (!options)
        options = {};
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let object = {};
      if (options.defaults)
        object.decoupled = false;
      if (message.decoupled != null && $Object.hasOwnProperty.call(message, "decoupled"))
        object.decoupled = message.decoupled;
      return object;
    };

    return ModelTransactionPolicy;
  })();

  inference.ModelRepositoryAgents = (function() {
    const ModelRepositoryAgents = function (properties) {
      this.agents = [];
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelRepositoryAgents.prototype.agents = $util.emptyArray;

    ModelRepositoryAgents.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.agents != null && message.agents.length)
        for (let i = 0; i < message.agents.length; ++i)
          $root.inference.ModelRepositoryAgents.Agent.encode(message.agents[i], writer.uint32(/* id 1, wireType 2 =*/10).fork(), _depth + 1).ldelim();
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelRepositoryAgents.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelRepositoryAgents();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if (!(message.agents && message.agents.length))
              message.agents = [];
            message.agents.push($root.inference.ModelRepositoryAgents.Agent.decode(reader, reader.size(), $undefined, _depth + 1));
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelRepositoryAgents.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelRepositoryAgents)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelRepositoryAgents: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelRepositoryAgents();
      if (object.agents) {
        if (!$Array.isArray(object.agents))
          throw $TypeError(".inference.ModelRepositoryAgents.agents: array expected");
        message.agents = $Array(object.agents.length);
        for (let i = 0; i < object.agents.length; ++i) {
          if (!$util.isObject(object.agents[i]))
            throw $TypeError(".inference.ModelRepositoryAgents.agents: object expected");
          message.agents[i] = $root.inference.ModelRepositoryAgents.Agent.fromObject(object.agents[i], _depth + 1);
        }
      }
      return message;
    };

    ModelRepositoryAgents.toObject = function (message, options, _depth) {
      if (!options)
        options = {};
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let object = {};
      if (options.arrays || options.defaults)
        object.agents = [];
      if (message.agents && message.agents.length) {
        object.agents = $Array(message.agents.length);
        for (let j = 0; j < message.agents.length; ++j)
          object.agents[j] = $root.inference.ModelRepositoryAgents.Agent.toObject(message.agents[j], options, _depth + 1);
      }
      return object;
    };

    ModelRepositoryAgents.Agent = (function() {
      const Agent = function (properties) {
        this.parameters = {};
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      Agent.prototype.name = "";

      Agent.prototype.parameters = $util.emptyObject;

      Agent.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
          writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
        if (message.parameters != null && $Object.hasOwnProperty.call(message, "parameters"))
          for (let keys = $Object.keys(message.parameters), i = 0; i < keys.length; ++i)
            writer.uint32(/* id 2, wireType 2 =*/18).fork().uint32(/* id 1, wireType 2 =*/10).string(keys[i]).uint32(/* id 2, wireType 2 =*/18).string(message.parameters[keys[i]]).ldelim();
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      Agent.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message, key, value;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.ModelRepositoryAgents.Agent();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 2)
                break;
              if ((value = reader.stringVerify()).length)
                message.name = value;
              else
                delete message.name;
              continue;
            }
          case 2: {
              if (wireType !== 2)
                break;
              if (message.parameters === $util.emptyObject)
                message.parameters = {};
              let end2 = reader.size() + reader.pos;
              if (end2 > reader.len)
                throw $RangeError("index out of range");
              reader.len = end2;
              key = "";
              value = "";
              while (reader.pos < end2) {
                let tag2 = reader.tag();
                wireType = tag2 & 7;
                switch (tag2 >>>= 3) {
                case 1:
                  if (wireType !== 2)
                    break;
                  key = reader.stringVerify();
                  continue;
                case 2:
                  if (wireType !== 2)
                    break;
                  value = reader.stringVerify();
                  continue;
                }
                reader.skipType(wireType, _depth, tag2);
              }
              if (reader.pos !== end2)
                throw $RangeError("index out of range");
              reader.len = end;
              if (key === "__proto__")
                $util.makeProp(message.parameters, key);
              message.parameters[key] = value;
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      Agent.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.ModelRepositoryAgents.Agent)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.ModelRepositoryAgents.Agent: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.ModelRepositoryAgents.Agent();
        if (object.name != null)
          if (typeof object.name !== "string" || object.name.length)
            message.name = $String(object.name);
        if (object.parameters) {
          if (!$util.isObject(object.parameters))
            throw $TypeError(".inference.ModelRepositoryAgents.Agent.parameters: object expected");
          message.parameters = {};
          for (let keys = $Object.keys(object.parameters), i = 0; i < keys.length; ++i) {
            if (keys[i] === "__proto__")
              $util.makeProp(message.parameters, keys[i]);
            message.parameters[keys[i]] = $String(object.parameters[keys[i]]);
          }
        }
        return message;
      };

      Agent.toObject = function (message, options, _depth) {
        if (!options)
          options = {};
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let object = {};
        if (options.objects || options.defaults)
          object.parameters = {};
        if (options.defaults)
          object.name = "";
        if (message.name != null && $Object.hasOwnProperty.call(message, "name"))
          object.name = message.name;
        let keys2;
        if (message.parameters && (keys2 = $Object.keys(message.parameters)).length) {
          object.parameters = {};
          for (let j = 0; j < keys2.length; ++j) {
            if (keys2[j] === "__proto__")
              $util.makeProp(object.parameters, keys2[j]);
            object.parameters[keys2[j]] = message.parameters[keys2[j]];
          }
        }
        return object;
      };

      return Agent;
    })();

    return ModelRepositoryAgents;
  })();

  inference.ModelResponseCache = (function() {
    const ModelResponseCache = function (properties) {
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelResponseCache.prototype.enable = false;

    ModelResponseCache.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.enable != null && $Object.hasOwnProperty.call(message, "enable") && message.enable !== false)
        writer.uint32(/* id 1, wireType 0 =*/8).bool(message.enable);
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelResponseCache.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelResponseCache();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 0)
              break;
            if (value = reader.bool())
              message.enable = value;
            else
              delete message.enable;
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelResponseCache.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelResponseCache)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelResponseCache: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelResponseCache();
      if (object.enable != null)
        if (object.enable)
          message.enable = $Boolean(object.enable);
      return message;
    };

    ModelResponseCache.toObject = function (message, options, _depth) {
      if (!options)
        options = {};
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let object = {};
      if (options.defaults)
        object.enable = false;
      if (message.enable != null && $Object.hasOwnProperty.call(message, "enable"))
        object.enable = message.enable;
      return object;
    };

    return ModelResponseCache;
  })();

  inference.ModelMetrics = (function() {
    const ModelMetrics = function (properties) {
      this.metricControl = [];
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelMetrics.prototype.metricControl = $util.emptyArray;

    ModelMetrics.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.metricControl != null && message.metricControl.length)
        for (let i = 0; i < message.metricControl.length; ++i)
          $root.inference.ModelMetrics.MetricControl.encode(message.metricControl[i], writer.uint32(/* id 1, wireType 2 =*/10).fork(), _depth + 1).ldelim();
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelMetrics.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelMetrics();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if (!(message.metricControl && message.metricControl.length))
              message.metricControl = [];
            message.metricControl.push($root.inference.ModelMetrics.MetricControl.decode(reader, reader.size(), $undefined, _depth + 1));
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelMetrics.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelMetrics)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelMetrics: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelMetrics();
      if (object.metricControl) {
        if (!$Array.isArray(object.metricControl))
          throw $TypeError(".inference.ModelMetrics.metricControl: array expected");
        message.metricControl = $Array(object.metricControl.length);
        for (let i = 0; i < object.metricControl.length; ++i) {
          if (!$util.isObject(object.metricControl[i]))
            throw $TypeError(".inference.ModelMetrics.metricControl: object expected");
          message.metricControl[i] = $root.inference.ModelMetrics.MetricControl.fromObject(object.metricControl[i], _depth + 1);
        }
      }
      return message;
    };

    ModelMetrics.toObject = function (message, options, _depth) {
      if (!options)
        options = {};
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let object = {};
      if (options.arrays || options.defaults)
        object.metricControl = [];
      if (message.metricControl && message.metricControl.length) {
        object.metricControl = $Array(message.metricControl.length);
        for (let j = 0; j < message.metricControl.length; ++j)
          object.metricControl[j] = $root.inference.ModelMetrics.MetricControl.toObject(message.metricControl[j], options, _depth + 1);
      }
      return object;
    };

    ModelMetrics.MetricControl = (function() {
      const MetricControl = function (properties) {
        if (properties)
          for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
            if (properties[keys[i]] != null && keys[i] !== "__proto__")
              this[keys[i]] = properties[keys[i]];
      };

      MetricControl.prototype.metricIdentifier = null;

      MetricControl.prototype.histogramOptions = null;

      // OneOf field names bound to virtual getters and setters
      let $oneOfFields;

      $Object.defineProperty(MetricControl.prototype, "metricOptions", {
        get: $util.oneOfGetter($oneOfFields = ["histogramOptions"]),
        set: $util.oneOfSetter($oneOfFields)
      });

      MetricControl.encode = function (message, writer, _depth) {
        if (!writer)
          writer = $Writer.create();
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        if (message.metricIdentifier != null && $Object.hasOwnProperty.call(message, "metricIdentifier"))
          $root.inference.ModelMetrics.MetricControl.MetricIdentifier.encode(message.metricIdentifier, writer.uint32(/* id 1, wireType 2 =*/10).fork(), _depth + 1).ldelim();
        if (message.histogramOptions != null && $Object.hasOwnProperty.call(message, "histogramOptions"))
          $root.inference.ModelMetrics.MetricControl.HistogramOptions.encode(message.histogramOptions, writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim();
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
          for (let i = 0; i < message.$unknowns.length; ++i)
            writer.raw(message.$unknowns[i]);
        return writer;
      };

      MetricControl.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
          reader = $Reader.create(reader);
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $Reader.recursionLimit)
          throw $Error("max depth exceeded");
        let end, message, value;
        if (length === $undefined)
          end = reader.len;
        else {
          end = reader.pos + length;
          if (end > reader.len)
            throw $RangeError("index out of range");
          length = reader.len;
          reader.len = end;
        }
        message = _target || new $root.inference.ModelMetrics.MetricControl();
        while (reader.pos < end) {
          let start = reader.pos;
          let tag = reader.tag();
          if (tag === _end) {
            _end = $undefined;
            break;
          }
          let wireType = tag & 7;
          switch (tag >>>= 3) {
          case 1: {
              if (wireType !== 2)
                break;
              message.metricIdentifier = $root.inference.ModelMetrics.MetricControl.MetricIdentifier.decode(reader, reader.size(), $undefined, _depth + 1, message.metricIdentifier);
              continue;
            }
          case 2: {
              if (wireType !== 2)
                break;
              message.histogramOptions = $root.inference.ModelMetrics.MetricControl.HistogramOptions.decode(reader, reader.size(), $undefined, _depth + 1, message.histogramOptions);
              message.metricOptions = "histogramOptions";
              continue;
            }
          }
          reader.skipType(wireType, _depth, tag);
          if (!reader.discardUnknown) {
            $util.makeProp(message, "$unknowns", false);
            (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
          }
        }
        if (length !== $undefined) {
          if (reader.pos !== end)
            throw $RangeError("index out of range");
          reader.len = length;
        }
        if (_end !== $undefined)
          throw $Error("missing end group");
        return message;
      };

      MetricControl.fromObject = function (object, _depth) {
        if (object instanceof $root.inference.ModelMetrics.MetricControl)
          return object;
        if (!$util.isObject(object))
          throw $TypeError(".inference.ModelMetrics.MetricControl: object expected");
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let message = new $root.inference.ModelMetrics.MetricControl();
        if (object.metricIdentifier != null) {
          if (!$util.isObject(object.metricIdentifier))
            throw $TypeError(".inference.ModelMetrics.MetricControl.metricIdentifier: object expected");
          message.metricIdentifier = $root.inference.ModelMetrics.MetricControl.MetricIdentifier.fromObject(object.metricIdentifier, _depth + 1);
        }
        if (object.histogramOptions != null) {
          if (!$util.isObject(object.histogramOptions))
            throw $TypeError(".inference.ModelMetrics.MetricControl.histogramOptions: object expected");
          message.histogramOptions = $root.inference.ModelMetrics.MetricControl.HistogramOptions.fromObject(object.histogramOptions, _depth + 1);
        }
        return message;
      };

      MetricControl.toObject = function (message, options, _depth) {
        if (!options)
          options = {};
        if (_depth === $undefined)
          _depth = 0;
        if (_depth > $util.recursionLimit)
          throw $Error("max depth exceeded");
        let object = {};
        if (options.defaults)
          object.metricIdentifier = null;
        if (message.metricIdentifier != null && $Object.hasOwnProperty.call(message, "metricIdentifier"))
          object.metricIdentifier = $root.inference.ModelMetrics.MetricControl.MetricIdentifier.toObject(message.metricIdentifier, options, _depth + 1);
        if (message.histogramOptions != null && $Object.hasOwnProperty.call(message, "histogramOptions")) {
          object.histogramOptions = $root.inference.ModelMetrics.MetricControl.HistogramOptions.toObject(message.histogramOptions, options, _depth + 1);
          if (options.oneofs)
            object.metricOptions = "histogramOptions";
        }
        return object;
      };

      MetricControl.MetricIdentifier = (function() {
        const MetricIdentifier = function (properties) {
          if (properties)
            for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
              if (properties[keys[i]] != null && keys[i] !== "__proto__")
                this[keys[i]] = properties[keys[i]];
        };

        MetricIdentifier.prototype.family = "";

        MetricIdentifier.encode = function (message, writer, _depth) {
          if (!writer)
            writer = $Writer.create();
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          if (message.family != null && $Object.hasOwnProperty.call(message, "family") && message.family !== "")
            writer.uint32(/* id 1, wireType 2 =*/10).string(message.family);
          if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
            for (let i = 0; i < message.$unknowns.length; ++i)
              writer.raw(message.$unknowns[i]);
          return writer;
        };

        MetricIdentifier.decode = function (reader, length, _end, _depth, _target) {
          if (!(reader instanceof $Reader))
            reader = $Reader.create(reader);
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $Reader.recursionLimit)
            throw $Error("max depth exceeded");
          let end, message, value;
          if (length === $undefined)
            end = reader.len;
          else {
            end = reader.pos + length;
            if (end > reader.len)
              throw $RangeError("index out of range");
            length = reader.len;
            reader.len = end;
          }
          message = _target || new $root.inference.ModelMetrics.MetricControl.MetricIdentifier();
          while (reader.pos < end) {
            let start = reader.pos;
            let tag = reader.tag();
            if (tag === _end) {
              _end = $undefined;
              break;
            }
            let wireType = tag & 7;
            switch (tag >>>= 3) {
            case 1: {
                if (wireType !== 2)
                  break;
                if ((value = reader.stringVerify()).length)
                  message.family = value;
                else
                  delete message.family;
                continue;
              }
            }
            reader.skipType(wireType, _depth, tag);
            if (!reader.discardUnknown) {
              $util.makeProp(message, "$unknowns", false);
              (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
            }
          }
          if (length !== $undefined) {
            if (reader.pos !== end)
              throw $RangeError("index out of range");
            reader.len = length;
          }
          if (_end !== $undefined)
            throw $Error("missing end group");
          return message;
        };

        MetricIdentifier.fromObject = function (object, _depth) {
          if (object instanceof $root.inference.ModelMetrics.MetricControl.MetricIdentifier)
            return object;
          if (!$util.isObject(object))
            throw $TypeError(".inference.ModelMetrics.MetricControl.MetricIdentifier: object expected");
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          let message = new $root.inference.ModelMetrics.MetricControl.MetricIdentifier();
          if (object.family != null)
            if (typeof object.family !== "string" || object.family.length)
              message.family = $String(object.family);
          return message;
        };

        MetricIdentifier.toObject = function (message, options, _depth) {
          if (!options)
            options = {};
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          let object = {};
          if (options.defaults)
            object.family = "";
          if (message.family != null && $Object.hasOwnProperty.call(message, "family"))
            object.family = message.family;
          return object;
        };

        return MetricIdentifier;
      })();

      MetricControl.HistogramOptions = (function() {
        const HistogramOptions = function (properties) {
          this.buckets = [];
          if (properties)
            for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
              if (properties[keys[i]] != null && keys[i] !== "__proto__")
                this[keys[i]] = properties[keys[i]];
        };

        HistogramOptions.prototype.buckets = $util.emptyArray;

        HistogramOptions.encode = function (message, writer, _depth) {
          if (!writer)
            writer = $Writer.create();
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          if (message.buckets != null && message.buckets.length)
            writer.uint32(/* id 1, wireType 2 =*/10).doubles(message.buckets);
          if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
            for (let i = 0; i < message.$unknowns.length; ++i)
              writer.raw(message.$unknowns[i]);
          return writer;
        };

        HistogramOptions.decode = function (reader, length, _end, _depth, _target) {
          if (!(reader instanceof $Reader))
            reader = $Reader.create(reader);
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $Reader.recursionLimit)
            throw $Error("max depth exceeded");
          let end, message;
          if (length === $undefined)
            end = reader.len;
          else {
            end = reader.pos + length;
            if (end > reader.len)
              throw $RangeError("index out of range");
            length = reader.len;
            reader.len = end;
          }
          message = _target || new $root.inference.ModelMetrics.MetricControl.HistogramOptions();
          while (reader.pos < end) {
            let start = reader.pos;
            let tag = reader.tag();
            if (tag === _end) {
              _end = $undefined;
              break;
            }
            let wireType = tag & 7;
            switch (tag >>>= 3) {
            case 1: {
                if (wireType === 2) {
                  if (!(message.buckets && message.buckets.length))
                    message.buckets = [];
                  reader.doubles(message.buckets);
                  continue;
                }
                if (wireType !== 1)
                  break;
                if (!(message.buckets && message.buckets.length))
                  message.buckets = [];
                message.buckets.push(reader.double());
                continue;
              }
            }
            reader.skipType(wireType, _depth, tag);
            if (!reader.discardUnknown) {
              $util.makeProp(message, "$unknowns", false);
              (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
            }
          }
          if (length !== $undefined) {
            if (reader.pos !== end)
              throw $RangeError("index out of range");
            reader.len = length;
          }
          if (_end !== $undefined)
            throw $Error("missing end group");
          return message;
        };

        HistogramOptions.fromObject = function (object, _depth) {
          if (object instanceof $root.inference.ModelMetrics.MetricControl.HistogramOptions)
            return object;
          if (!$util.isObject(object))
            throw $TypeError(".inference.ModelMetrics.MetricControl.HistogramOptions: object expected");
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          let message = new $root.inference.ModelMetrics.MetricControl.HistogramOptions();
          if (object.buckets) {
            if (!$Array.isArray(object.buckets))
              throw $TypeError(".inference.ModelMetrics.MetricControl.HistogramOptions.buckets: array expected");
            message.buckets = $Array(object.buckets.length);
            for (let i = 0; i < object.buckets.length; ++i)
              message.buckets[i] = $Number(object.buckets[i]);
          }
          return message;
        };

        HistogramOptions.toObject = function (message, options, _depth) {
          if (!options)
            options = {};
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          let object = {};
          if (options.arrays || options.defaults)
            object.buckets = [];
          if (message.buckets && message.buckets.length) {
            object.buckets = $Array(message.buckets.length);
            for (let j = 0; j < message.buckets.length; ++j)
              object.buckets[j] = options.json && !$isFinite(message.buckets[j]) ? $String(message.buckets[j]) : message.buckets[j];
          }
          return object;
        };

        return HistogramOptions;
      })();

      return MetricControl;
    })();

    return ModelMetrics;
  })();

  inference.ModelConfig = (function() {
    const ModelConfig = function (properties) {
      this.input = [];
      this.output = [];
      this.batchInput = [];
      this.batchOutput = [];
      this.instanceGroup = [];
      this.ccModelFilenames = {};
      this.metricTags = {};
      this.parameters = {};
      this.modelWarmup = [];
      if (properties)
        for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
          if (properties[keys[i]] != null && keys[i] !== "__proto__")
            this[keys[i]] = properties[keys[i]];
    };

    ModelConfig.prototype.name = "";

    ModelConfig.prototype.platform = "";

    ModelConfig.prototype.backend = "";

    ModelConfig.prototype.runtime = "";

    ModelConfig.prototype.versionPolicy = null;

    ModelConfig.prototype.maxBatchSize = 0;

    ModelConfig.prototype.input = $util.emptyArray;

    ModelConfig.prototype.output = $util.emptyArray;

    ModelConfig.prototype.batchInput = $util.emptyArray;

    ModelConfig.prototype.batchOutput = $util.emptyArray;

    ModelConfig.prototype.optimization = null;

    ModelConfig.prototype.dynamicBatching = null;

    ModelConfig.prototype.sequenceBatching = null;

    ModelConfig.prototype.ensembleScheduling = null;

    ModelConfig.prototype.instanceGroup = $util.emptyArray;

    ModelConfig.prototype.defaultModelFilename = "";

    ModelConfig.prototype.ccModelFilenames = $util.emptyObject;

    ModelConfig.prototype.metricTags = $util.emptyObject;

    ModelConfig.prototype.parameters = $util.emptyObject;

    ModelConfig.prototype.modelWarmup = $util.emptyArray;

    ModelConfig.prototype.modelOperations = null;

    ModelConfig.prototype.modelTransactionPolicy = null;

    ModelConfig.prototype.modelRepositoryAgents = null;

    ModelConfig.prototype.responseCache = null;

    ModelConfig.prototype.modelMetrics = null;

    // OneOf field names bound to virtual getters and setters
    let $oneOfFields;

    $Object.defineProperty(ModelConfig.prototype, "schedulingChoice", {
      get: $util.oneOfGetter($oneOfFields = ["dynamicBatching", "sequenceBatching", "ensembleScheduling"]),
      set: $util.oneOfSetter($oneOfFields)
    });

    ModelConfig.encode = function (message, writer, _depth) {
      if (!writer)
        writer = $Writer.create();
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
        writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
      if (message.platform != null && $Object.hasOwnProperty.call(message, "platform") && message.platform !== "")
        writer.uint32(/* id 2, wireType 2 =*/18).string(message.platform);
      if (message.versionPolicy != null && $Object.hasOwnProperty.call(message, "versionPolicy"))
        $root.inference.ModelVersionPolicy.encode(message.versionPolicy, writer.uint32(/* id 3, wireType 2 =*/26).fork(), _depth + 1).ldelim();
      if (message.maxBatchSize != null && $Object.hasOwnProperty.call(message, "maxBatchSize") && message.maxBatchSize !== 0)
        writer.uint32(/* id 4, wireType 0 =*/32).int32(message.maxBatchSize);
      if (message.input != null && message.input.length)
        for (let i = 0; i < message.input.length; ++i)
          $root.inference.ModelInput.encode(message.input[i], writer.uint32(/* id 5, wireType 2 =*/42).fork(), _depth + 1).ldelim();
      if (message.output != null && message.output.length)
        for (let i = 0; i < message.output.length; ++i)
          $root.inference.ModelOutput.encode(message.output[i], writer.uint32(/* id 6, wireType 2 =*/50).fork(), _depth + 1).ldelim();
      if (message.instanceGroup != null && message.instanceGroup.length)
        for (let i = 0; i < message.instanceGroup.length; ++i)
          $root.inference.ModelInstanceGroup.encode(message.instanceGroup[i], writer.uint32(/* id 7, wireType 2 =*/58).fork(), _depth + 1).ldelim();
      if (message.defaultModelFilename != null && $Object.hasOwnProperty.call(message, "defaultModelFilename") && message.defaultModelFilename !== "")
        writer.uint32(/* id 8, wireType 2 =*/66).string(message.defaultModelFilename);
      if (message.ccModelFilenames != null && $Object.hasOwnProperty.call(message, "ccModelFilenames"))
        for (let keys = $Object.keys(message.ccModelFilenames), i = 0; i < keys.length; ++i)
          writer.uint32(/* id 9, wireType 2 =*/74).fork().uint32(/* id 1, wireType 2 =*/10).string(keys[i]).uint32(/* id 2, wireType 2 =*/18).string(message.ccModelFilenames[keys[i]]).ldelim();
      if (message.metricTags != null && $Object.hasOwnProperty.call(message, "metricTags"))
        for (let keys = $Object.keys(message.metricTags), i = 0; i < keys.length; ++i)
          writer.uint32(/* id 10, wireType 2 =*/82).fork().uint32(/* id 1, wireType 2 =*/10).string(keys[i]).uint32(/* id 2, wireType 2 =*/18).string(message.metricTags[keys[i]]).ldelim();
      if (message.dynamicBatching != null && $Object.hasOwnProperty.call(message, "dynamicBatching"))
        $root.inference.ModelDynamicBatching.encode(message.dynamicBatching, writer.uint32(/* id 11, wireType 2 =*/90).fork(), _depth + 1).ldelim();
      if (message.optimization != null && $Object.hasOwnProperty.call(message, "optimization"))
        $root.inference.ModelOptimizationPolicy.encode(message.optimization, writer.uint32(/* id 12, wireType 2 =*/98).fork(), _depth + 1).ldelim();
      if (message.sequenceBatching != null && $Object.hasOwnProperty.call(message, "sequenceBatching"))
        $root.inference.ModelSequenceBatching.encode(message.sequenceBatching, writer.uint32(/* id 13, wireType 2 =*/106).fork(), _depth + 1).ldelim();
      if (message.parameters != null && $Object.hasOwnProperty.call(message, "parameters"))
        for (let keys = $Object.keys(message.parameters), i = 0; i < keys.length; ++i) {
          writer.uint32(/* id 14, wireType 2 =*/114).fork().uint32(/* id 1, wireType 2 =*/10).string(keys[i]);
          $root.inference.ModelParameter.encode(message.parameters[keys[i]], writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim().ldelim();
        }
      if (message.ensembleScheduling != null && $Object.hasOwnProperty.call(message, "ensembleScheduling"))
        $root.inference.ModelEnsembling.encode(message.ensembleScheduling, writer.uint32(/* id 15, wireType 2 =*/122).fork(), _depth + 1).ldelim();
      if (message.modelWarmup != null && message.modelWarmup.length)
        for (let i = 0; i < message.modelWarmup.length; ++i)
          $root.inference.ModelWarmup.encode(message.modelWarmup[i], writer.uint32(/* id 16, wireType 2 =*/130).fork(), _depth + 1).ldelim();
      if (message.backend != null && $Object.hasOwnProperty.call(message, "backend") && message.backend !== "")
        writer.uint32(/* id 17, wireType 2 =*/138).string(message.backend);
      if (message.modelOperations != null && $Object.hasOwnProperty.call(message, "modelOperations"))
        $root.inference.ModelOperations.encode(message.modelOperations, writer.uint32(/* id 18, wireType 2 =*/146).fork(), _depth + 1).ldelim();
      if (message.modelTransactionPolicy != null && $Object.hasOwnProperty.call(message, "modelTransactionPolicy"))
        $root.inference.ModelTransactionPolicy.encode(message.modelTransactionPolicy, writer.uint32(/* id 19, wireType 2 =*/154).fork(), _depth + 1).ldelim();
      if (message.batchInput != null && message.batchInput.length)
        for (let i = 0; i < message.batchInput.length; ++i)
          $root.inference.BatchInput.encode(message.batchInput[i], writer.uint32(/* id 20, wireType 2 =*/162).fork(), _depth + 1).ldelim();
      if (message.batchOutput != null && message.batchOutput.length)
        for (let i = 0; i < message.batchOutput.length; ++i)
          $root.inference.BatchOutput.encode(message.batchOutput[i], writer.uint32(/* id 21, wireType 2 =*/170).fork(), _depth + 1).ldelim();
      if (message.modelRepositoryAgents != null && $Object.hasOwnProperty.call(message, "modelRepositoryAgents"))
        $root.inference.ModelRepositoryAgents.encode(message.modelRepositoryAgents, writer.uint32(/* id 23, wireType 2 =*/186).fork(), _depth + 1).ldelim();
      if (message.responseCache != null && $Object.hasOwnProperty.call(message, "responseCache"))
        $root.inference.ModelResponseCache.encode(message.responseCache, writer.uint32(/* id 24, wireType 2 =*/194).fork(), _depth + 1).ldelim();
      if (message.runtime != null && $Object.hasOwnProperty.call(message, "runtime") && message.runtime !== "")
        writer.uint32(/* id 25, wireType 2 =*/202).string(message.runtime);
      if (message.modelMetrics != null && $Object.hasOwnProperty.call(message, "modelMetrics"))
        $root.inference.ModelMetrics.encode(message.modelMetrics, writer.uint32(/* id 26, wireType 2 =*/210).fork(), _depth + 1).ldelim();
      if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
        for (let i = 0; i < message.$unknowns.length; ++i)
          writer.raw(message.$unknowns[i]);
      return writer;
    };

    ModelConfig.decode = function (reader, length, _end, _depth, _target) {
      if (!(reader instanceof $Reader))
        reader = $Reader.create(reader);
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $Reader.recursionLimit)
        throw $Error("max depth exceeded");
      let end, message, key, value;
      if (length === $undefined)
        end = reader.len;
      else {
        end = reader.pos + length;
        if (end > reader.len)
          throw $RangeError("index out of range");
        length = reader.len;
        reader.len = end;
      }
      message = _target || new $root.inference.ModelConfig();
      while (reader.pos < end) {
        let start = reader.pos;
        let tag = reader.tag();
        if (tag === _end) {
          _end = $undefined;
          break;
        }
        let wireType = tag & 7;
        switch (tag >>>= 3) {
        case 1: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.name = value;
            else
              delete message.name;
            continue;
          }
        case 2: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.platform = value;
            else
              delete message.platform;
            continue;
          }
        case 17: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.backend = value;
            else
              delete message.backend;
            continue;
          }
        case 25: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.runtime = value;
            else
              delete message.runtime;
            continue;
          }
        case 3: {
            if (wireType !== 2)
              break;
            message.versionPolicy = $root.inference.ModelVersionPolicy.decode(reader, reader.size(), $undefined, _depth + 1, message.versionPolicy);
            continue;
          }
        case 4: {
            if (wireType !== 0)
              break;
            if (value = reader.int32())
              message.maxBatchSize = value;
            else
              delete message.maxBatchSize;
            continue;
          }
        case 5: {
            if (wireType !== 2)
              break;
            if (!(message.input && message.input.length))
              message.input = [];
            message.input.push($root.inference.ModelInput.decode(reader, reader.size(), $undefined, _depth + 1));
            continue;
          }
        case 6: {
            if (wireType !== 2)
              break;
            if (!(message.output && message.output.length))
              message.output = [];
            message.output.push($root.inference.ModelOutput.decode(reader, reader.size(), $undefined, _depth + 1));
            continue;
          }
        case 20: {
            if (wireType !== 2)
              break;
            if (!(message.batchInput && message.batchInput.length))
              message.batchInput = [];
            message.batchInput.push($root.inference.BatchInput.decode(reader, reader.size(), $undefined, _depth + 1));
            continue;
          }
        case 21: {
            if (wireType !== 2)
              break;
            if (!(message.batchOutput && message.batchOutput.length))
              message.batchOutput = [];
            message.batchOutput.push($root.inference.BatchOutput.decode(reader, reader.size(), $undefined, _depth + 1));
            continue;
          }
        case 12: {
            if (wireType !== 2)
              break;
            message.optimization = $root.inference.ModelOptimizationPolicy.decode(reader, reader.size(), $undefined, _depth + 1, message.optimization);
            continue;
          }
        case 11: {
            if (wireType !== 2)
              break;
            message.dynamicBatching = $root.inference.ModelDynamicBatching.decode(reader, reader.size(), $undefined, _depth + 1, message.dynamicBatching);
            message.schedulingChoice = "dynamicBatching";
            continue;
          }
        case 13: {
            if (wireType !== 2)
              break;
            message.sequenceBatching = $root.inference.ModelSequenceBatching.decode(reader, reader.size(), $undefined, _depth + 1, message.sequenceBatching);
            message.schedulingChoice = "sequenceBatching";
            continue;
          }
        case 15: {
            if (wireType !== 2)
              break;
            message.ensembleScheduling = $root.inference.ModelEnsembling.decode(reader, reader.size(), $undefined, _depth + 1, message.ensembleScheduling);
            message.schedulingChoice = "ensembleScheduling";
            continue;
          }
        case 7: {
            if (wireType !== 2)
              break;
            if (!(message.instanceGroup && message.instanceGroup.length))
              message.instanceGroup = [];
            message.instanceGroup.push($root.inference.ModelInstanceGroup.decode(reader, reader.size(), $undefined, _depth + 1));
            continue;
          }
        case 8: {
            if (wireType !== 2)
              break;
            if ((value = reader.stringVerify()).length)
              message.defaultModelFilename = value;
            else
              delete message.defaultModelFilename;
            continue;
          }
        case 9: {
            if (wireType !== 2)
              break;
            if (message.ccModelFilenames === $util.emptyObject)
              message.ccModelFilenames = {};
            let end2 = reader.size() + reader.pos;
            if (end2 > reader.len)
              throw $RangeError("index out of range");
            reader.len = end2;
            key = "";
            value = "";
            while (reader.pos < end2) {
              let tag2 = reader.tag();
              wireType = tag2 & 7;
              switch (tag2 >>>= 3) {
              case 1:
                if (wireType !== 2)
                  break;
                key = reader.stringVerify();
                continue;
              case 2:
                if (wireType !== 2)
                  break;
                value = reader.stringVerify();
                continue;
              }
              reader.skipType(wireType, _depth, tag2);
            }
            if (reader.pos !== end2)
              throw $RangeError("index out of range");
            reader.len = end;
            if (key === "__proto__")
              $util.makeProp(message.ccModelFilenames, key);
            message.ccModelFilenames[key] = value;
            continue;
          }
        case 10: {
            if (wireType !== 2)
              break;
            if (message.metricTags === $util.emptyObject)
              message.metricTags = {};
            let end2 = reader.size() + reader.pos;
            if (end2 > reader.len)
              throw $RangeError("index out of range");
            reader.len = end2;
            key = "";
            value = "";
            while (reader.pos < end2) {
              let tag2 = reader.tag();
              wireType = tag2 & 7;
              switch (tag2 >>>= 3) {
              case 1:
                if (wireType !== 2)
                  break;
                key = reader.stringVerify();
                continue;
              case 2:
                if (wireType !== 2)
                  break;
                value = reader.stringVerify();
                continue;
              }
              reader.skipType(wireType, _depth, tag2);
            }
            if (reader.pos !== end2)
              throw $RangeError("index out of range");
            reader.len = end;
            if (key === "__proto__")
              $util.makeProp(message.metricTags, key);
            message.metricTags[key] = value;
            continue;
          }
        case 14: {
            if (wireType !== 2)
              break;
            if (message.parameters === $util.emptyObject)
              message.parameters = {};
            let end2 = reader.size() + reader.pos;
            if (end2 > reader.len)
              throw $RangeError("index out of range");
            reader.len = end2;
            key = "";
            value = null;
            while (reader.pos < end2) {
              let tag2 = reader.tag();
              wireType = tag2 & 7;
              switch (tag2 >>>= 3) {
              case 1:
                if (wireType !== 2)
                  break;
                key = reader.stringVerify();
                continue;
              case 2:
                if (wireType !== 2)
                  break;
                value = $root.inference.ModelParameter.decode(reader, reader.size(), $undefined, _depth + 1, value);
                continue;
              }
              reader.skipType(wireType, _depth, tag2);
            }
            if (reader.pos !== end2)
              throw $RangeError("index out of range");
            reader.len = end;
            if (key === "__proto__")
              $util.makeProp(message.parameters, key);
            message.parameters[key] = value || new $root.inference.ModelParameter();
            continue;
          }
        case 16: {
            if (wireType !== 2)
              break;
            if (!(message.modelWarmup && message.modelWarmup.length))
              message.modelWarmup = [];
            message.modelWarmup.push($root.inference.ModelWarmup.decode(reader, reader.size(), $undefined, _depth + 1));
            continue;
          }
        case 18: {
            if (wireType !== 2)
              break;
            message.modelOperations = $root.inference.ModelOperations.decode(reader, reader.size(), $undefined, _depth + 1, message.modelOperations);
            continue;
          }
        case 19: {
            if (wireType !== 2)
              break;
            message.modelTransactionPolicy = $root.inference.ModelTransactionPolicy.decode(reader, reader.size(), $undefined, _depth + 1, message.modelTransactionPolicy);
            continue;
          }
        case 23: {
            if (wireType !== 2)
              break;
            message.modelRepositoryAgents = $root.inference.ModelRepositoryAgents.decode(reader, reader.size(), $undefined, _depth + 1, message.modelRepositoryAgents);
            continue;
          }
        case 24: {
            if (wireType !== 2)
              break;
            message.responseCache = $root.inference.ModelResponseCache.decode(reader, reader.size(), $undefined, _depth + 1, message.responseCache);
            continue;
          }
        case 26: {
            if (wireType !== 2)
              break;
            message.modelMetrics = $root.inference.ModelMetrics.decode(reader, reader.size(), $undefined, _depth + 1, message.modelMetrics);
            continue;
          }
        }
        reader.skipType(wireType, _depth, tag);
        if (!reader.discardUnknown) {
          $util.makeProp(message, "$unknowns", false);
          (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
        }
      }
      if (length !== $undefined) {
        if (reader.pos !== end)
          throw $RangeError("index out of range");
        reader.len = length;
      }
      if (_end !== $undefined)
        throw $Error("missing end group");
      return message;
    };

    ModelConfig.fromObject = function (object, _depth) {
      if (object instanceof $root.inference.ModelConfig)
        return object;
      if (!$util.isObject(object))
        throw $TypeError(".inference.ModelConfig: object expected");
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let message = new $root.inference.ModelConfig();
      if (object.name != null)
        if (typeof object.name !== "string" || object.name.length)
          message.name = $String(object.name);
      if (object.platform != null)
        if (typeof object.platform !== "string" || object.platform.length)
          message.platform = $String(object.platform);
      if (object.backend != null)
        if (typeof object.backend !== "string" || object.backend.length)
          message.backend = $String(object.backend);
      if (object.runtime != null)
        if (typeof object.runtime !== "string" || object.runtime.length)
          message.runtime = $String(object.runtime);
      if (object.versionPolicy != null) {
        if (!$util.isObject(object.versionPolicy))
          throw $TypeError(".inference.ModelConfig.versionPolicy: object expected");
        message.versionPolicy = $root.inference.ModelVersionPolicy.fromObject(object.versionPolicy, _depth + 1);
      }
      if (object.maxBatchSize != null)
        if ($Number(object.maxBatchSize) !== 0)
          message.maxBatchSize = object.maxBatchSize | 0;
      if (object.input) {
        if (!$Array.isArray(object.input))
          throw $TypeError(".inference.ModelConfig.input: array expected");
        message.input = $Array(object.input.length);
        for (let i = 0; i < object.input.length; ++i) {
          if (!$util.isObject(object.input[i]))
            throw $TypeError(".inference.ModelConfig.input: object expected");
          message.input[i] = $root.inference.ModelInput.fromObject(object.input[i], _depth + 1);
        }
      }
      if (object.output) {
        if (!$Array.isArray(object.output))
          throw $TypeError(".inference.ModelConfig.output: array expected");
        message.output = $Array(object.output.length);
        for (let i = 0; i < object.output.length; ++i) {
          if (!$util.isObject(object.output[i]))
            throw $TypeError(".inference.ModelConfig.output: object expected");
          message.output[i] = $root.inference.ModelOutput.fromObject(object.output[i], _depth + 1);
        }
      }
      if (object.batchInput) {
        if (!$Array.isArray(object.batchInput))
          throw $TypeError(".inference.ModelConfig.batchInput: array expected");
        message.batchInput = $Array(object.batchInput.length);
        for (let i = 0; i < object.batchInput.length; ++i) {
          if (!$util.isObject(object.batchInput[i]))
            throw $TypeError(".inference.ModelConfig.batchInput: object expected");
          message.batchInput[i] = $root.inference.BatchInput.fromObject(object.batchInput[i], _depth + 1);
        }
      }
      if (object.batchOutput) {
        if (!$Array.isArray(object.batchOutput))
          throw $TypeError(".inference.ModelConfig.batchOutput: array expected");
        message.batchOutput = $Array(object.batchOutput.length);
        for (let i = 0; i < object.batchOutput.length; ++i) {
          if (!$util.isObject(object.batchOutput[i]))
            throw $TypeError(".inference.ModelConfig.batchOutput: object expected");
          message.batchOutput[i] = $root.inference.BatchOutput.fromObject(object.batchOutput[i], _depth + 1);
        }
      }
      if (object.optimization != null) {
        if (!$util.isObject(object.optimization))
          throw $TypeError(".inference.ModelConfig.optimization: object expected");
        message.optimization = $root.inference.ModelOptimizationPolicy.fromObject(object.optimization, _depth + 1);
      }
      if (object.dynamicBatching != null) {
        if (!$util.isObject(object.dynamicBatching))
          throw $TypeError(".inference.ModelConfig.dynamicBatching: object expected");
        message.dynamicBatching = $root.inference.ModelDynamicBatching.fromObject(object.dynamicBatching, _depth + 1);
      }
      if (object.sequenceBatching != null) {
        if (!$util.isObject(object.sequenceBatching))
          throw $TypeError(".inference.ModelConfig.sequenceBatching: object expected");
        message.sequenceBatching = $root.inference.ModelSequenceBatching.fromObject(object.sequenceBatching, _depth + 1);
      }
      if (object.ensembleScheduling != null) {
        if (!$util.isObject(object.ensembleScheduling))
          throw $TypeError(".inference.ModelConfig.ensembleScheduling: object expected");
        message.ensembleScheduling = $root.inference.ModelEnsembling.fromObject(object.ensembleScheduling, _depth + 1);
      }
      if (object.instanceGroup) {
        if (!$Array.isArray(object.instanceGroup))
          throw $TypeError(".inference.ModelConfig.instanceGroup: array expected");
        message.instanceGroup = $Array(object.instanceGroup.length);
        for (let i = 0; i < object.instanceGroup.length; ++i) {
          if (!$util.isObject(object.instanceGroup[i]))
            throw $TypeError(".inference.ModelConfig.instanceGroup: object expected");
          message.instanceGroup[i] = $root.inference.ModelInstanceGroup.fromObject(object.instanceGroup[i], _depth + 1);
        }
      }
      if (object.defaultModelFilename != null)
        if (typeof object.defaultModelFilename !== "string" || object.defaultModelFilename.length)
          message.defaultModelFilename = $String(object.defaultModelFilename);
      if (object.ccModelFilenames) {
        if (!$util.isObject(object.ccModelFilenames))
          throw $TypeError(".inference.ModelConfig.ccModelFilenames: object expected");
        message.ccModelFilenames = {};
        for (let keys = $Object.keys(object.ccModelFilenames), i = 0; i < keys.length; ++i) {
          if (keys[i] === "__proto__")
            $util.makeProp(message.ccModelFilenames, keys[i]);
          message.ccModelFilenames[keys[i]] = $String(object.ccModelFilenames[keys[i]]);
        }
      }
      if (object.metricTags) {
        if (!$util.isObject(object.metricTags))
          throw $TypeError(".inference.ModelConfig.metricTags: object expected");
        message.metricTags = {};
        for (let keys = $Object.keys(object.metricTags), i = 0; i < keys.length; ++i) {
          if (keys[i] === "__proto__")
            $util.makeProp(message.metricTags, keys[i]);
          message.metricTags[keys[i]] = $String(object.metricTags[keys[i]]);
        }
      }
      if (object.parameters) {
        if (!$util.isObject(object.parameters))
          throw $TypeError(".inference.ModelConfig.parameters: object expected");
        message.parameters = {};
        for (let keys = $Object.keys(object.parameters), i = 0; i < keys.length; ++i) {
          if (keys[i] === "__proto__")
            $util.makeProp(message.parameters, keys[i]);
          if (!$util.isObject(object.parameters[keys[i]]))
            throw $TypeError(".inference.ModelConfig.parameters: object expected");
          message.parameters[keys[i]] = $root.inference.ModelParameter.fromObject(object.parameters[keys[i]], _depth + 1);
        }
      }
      if (object.modelWarmup) {
        if (!$Array.isArray(object.modelWarmup))
          throw $TypeError(".inference.ModelConfig.modelWarmup: array expected");
        message.modelWarmup = $Array(object.modelWarmup.length);
        for (let i = 0; i < object.modelWarmup.length; ++i) {
          if (!$util.isObject(object.modelWarmup[i]))
            throw $TypeError(".inference.ModelConfig.modelWarmup: object expected");
          message.modelWarmup[i] = $root.inference.ModelWarmup.fromObject(object.modelWarmup[i], _depth + 1);
        }
      }
      if (object.modelOperations != null) {
        if (!$util.isObject(object.modelOperations))
          throw $TypeError(".inference.ModelConfig.modelOperations: object expected");
        message.modelOperations = $root.inference.ModelOperations.fromObject(object.modelOperations, _depth + 1);
      }
      if (object.modelTransactionPolicy != null) {
        if (!$util.isObject(object.modelTransactionPolicy))
          throw $TypeError(".inference.ModelConfig.modelTransactionPolicy: object expected");
        message.modelTransactionPolicy = $root.inference.ModelTransactionPolicy.fromObject(object.modelTransactionPolicy, _depth + 1);
      }
      if (object.modelRepositoryAgents != null) {
        if (!$util.isObject(object.modelRepositoryAgents))
          throw $TypeError(".inference.ModelConfig.modelRepositoryAgents: object expected");
        message.modelRepositoryAgents = $root.inference.ModelRepositoryAgents.fromObject(object.modelRepositoryAgents, _depth + 1);
      }
      if (object.responseCache != null) {
        if (!$util.isObject(object.responseCache))
          throw $TypeError(".inference.ModelConfig.responseCache: object expected");
        message.responseCache = $root.inference.ModelResponseCache.fromObject(object.responseCache, _depth + 1);
      }
      if (object.modelMetrics != null) {
        if (!$util.isObject(object.modelMetrics))
          throw $TypeError(".inference.ModelConfig.modelMetrics: object expected");
        message.modelMetrics = $root.inference.ModelMetrics.fromObject(object.modelMetrics, _depth + 1);
      }
      return message;
    };

    ModelConfig.toObject = function (message, options, _depth) {
      if (!options)
        options = {};
      if (_depth === $undefined)
        _depth = 0;
      if (_depth > $util.recursionLimit)
        throw $Error("max depth exceeded");
      let object = {};
      if (options.arrays || options.defaults) {
        object.input = [];
        object.output = [];
        object.instanceGroup = [];
        object.modelWarmup = [];
        object.batchInput = [];
        object.batchOutput = [];
      }
      if (options.objects || options.defaults) {
        object.ccModelFilenames = {};
        object.metricTags = {};
        object.parameters = {};
      }
      if (options.defaults) {
        object.name = "";
        object.platform = "";
        object.versionPolicy = null;
        object.maxBatchSize = 0;
        object.defaultModelFilename = "";
        object.optimization = null;
        object.backend = "";
        object.modelOperations = null;
        object.modelTransactionPolicy = null;
        object.modelRepositoryAgents = null;
        object.responseCache = null;
        object.runtime = "";
        object.modelMetrics = null;
      }
      if (message.name != null && $Object.hasOwnProperty.call(message, "name"))
        object.name = message.name;
      if (message.platform != null && $Object.hasOwnProperty.call(message, "platform"))
        object.platform = message.platform;
      if (message.versionPolicy != null && $Object.hasOwnProperty.call(message, "versionPolicy"))
        object.versionPolicy = $root.inference.ModelVersionPolicy.toObject(message.versionPolicy, options, _depth + 1);
      if (message.maxBatchSize != null && $Object.hasOwnProperty.call(message, "maxBatchSize"))
        object.maxBatchSize = message.maxBatchSize;
      if (message.input && message.input.length) {
        object.input = $Array(message.input.length);
        for (let j = 0; j < message.input.length; ++j)
          object.input[j] = $root.inference.ModelInput.toObject(message.input[j], options, _depth + 1);
      }
      if (message.output && message.output.length) {
        object.output = $Array(message.output.length);
        for (let j = 0; j < message.output.length; ++j)
          object.output[j] = $root.inference.ModelOutput.toObject(message.output[j], options, _depth + 1);
      }
      if (message.instanceGroup && message.instanceGroup.length) {
        object.instanceGroup = $Array(message.instanceGroup.length);
        for (let j = 0; j < message.instanceGroup.length; ++j)
          object.instanceGroup[j] = $root.inference.ModelInstanceGroup.toObject(message.instanceGroup[j], options, _depth + 1);
      }
      if (message.defaultModelFilename != null && $Object.hasOwnProperty.call(message, "defaultModelFilename"))
        object.defaultModelFilename = message.defaultModelFilename;
      let keys2;
      if (message.ccModelFilenames && (keys2 = $Object.keys(message.ccModelFilenames)).length) {
        object.ccModelFilenames = {};
        for (let j = 0; j < keys2.length; ++j) {
          if (keys2[j] === "__proto__")
            $util.makeProp(object.ccModelFilenames, keys2[j]);
          object.ccModelFilenames[keys2[j]] = message.ccModelFilenames[keys2[j]];
        }
      }
      if (message.metricTags && (keys2 = $Object.keys(message.metricTags)).length) {
        object.metricTags = {};
        for (let j = 0; j < keys2.length; ++j) {
          if (keys2[j] === "__proto__")
            $util.makeProp(object.metricTags, keys2[j]);
          object.metricTags[keys2[j]] = message.metricTags[keys2[j]];
        }
      }
      if (message.dynamicBatching != null && $Object.hasOwnProperty.call(message, "dynamicBatching")) {
        object.dynamicBatching = $root.inference.ModelDynamicBatching.toObject(message.dynamicBatching, options, _depth + 1);
        if (options.oneofs)
          object.schedulingChoice = "dynamicBatching";
      }
      if (message.optimization != null && $Object.hasOwnProperty.call(message, "optimization"))
        object.optimization = $root.inference.ModelOptimizationPolicy.toObject(message.optimization, options, _depth + 1);
      if (message.sequenceBatching != null && $Object.hasOwnProperty.call(message, "sequenceBatching")) {
        object.sequenceBatching = $root.inference.ModelSequenceBatching.toObject(message.sequenceBatching, options, _depth + 1);
        if (options.oneofs)
          object.schedulingChoice = "sequenceBatching";
      }
      if (message.parameters && (keys2 = $Object.keys(message.parameters)).length) {
        object.parameters = {};
        for (let j = 0; j < keys2.length; ++j) {
          if (keys2[j] === "__proto__")
            $util.makeProp(object.parameters, keys2[j]);
          object.parameters[keys2[j]] = $root.inference.ModelParameter.toObject(message.parameters[keys2[j]], options, _depth + 1);
        }
      }
      if (message.ensembleScheduling != null && $Object.hasOwnProperty.call(message, "ensembleScheduling")) {
        object.ensembleScheduling = $root.inference.ModelEnsembling.toObject(message.ensembleScheduling, options, _depth + 1);
        if (options.oneofs)
          object.schedulingChoice = "ensembleScheduling";
      }
      if (message.modelWarmup && message.modelWarmup.length) {
        object.modelWarmup = $Array(message.modelWarmup.length);
        for (let j = 0; j < message.modelWarmup.length; ++j)
          object.modelWarmup[j] = $root.inference.ModelWarmup.toObject(message.modelWarmup[j], options, _depth + 1);
      }
      if (message.backend != null && $Object.hasOwnProperty.call(message, "backend"))
        object.backend = message.backend;
      if (message.modelOperations != null && $Object.hasOwnProperty.call(message, "modelOperations"))
        object.modelOperations = $root.inference.ModelOperations.toObject(message.modelOperations, options, _depth + 1);
      if (message.modelTransactionPolicy != null && $Object.hasOwnProperty.call(message, "modelTransactionPolicy"))
        object.modelTransactionPolicy = $root.inference.ModelTransactionPolicy.toObject(message.modelTransactionPolicy, options, _depth + 1);
      if (message.batchInput && message.batchInput.length) {
        object.batchInput = $Array(message.batchInput.length);
        for (let j = 0; j < message.batchInput.length; ++j)
          object.batchInput[j] = $root.inference.BatchInput.toObject(message.batchInput[j], options, _depth + 1);
      }
      if (message.batchOutput && message.batchOutput.length) {
        object.batchOutput = $Array(message.batchOutput.length);
        for (let j = 0; j < message.batchOutput.length; ++j)
          object.batchOutput[j] = $root.inference.BatchOutput.toObject(message.batchOutput[j], options, _depth + 1);
      }
      if (message.modelRepositoryAgents != null && $Object.hasOwnProperty.call(message, "modelRepositoryAgents"))
        object.modelRepositoryAgents = $root.inference.ModelRepositoryAgents.toObject(message.modelRepositoryAgents, options, _depth + 1);
      if (message.responseCache != null && $Object.hasOwnProperty.call(message, "responseCache"))
        object.responseCache = $root.inference.ModelResponseCache.toObject(message.responseCache, options, _depth + 1);
      if (message.runtime != null && $Object.hasOwnProperty.call(message, "runtime"))
        object.runtime = message.runtime;
      if (message.modelMetrics != null && $Object.hasOwnProperty.call(message, "modelMetrics"))
        object.modelMetrics = $root.inference.ModelMetrics.toObject(message.modelMetrics, options, _depth + 1);
      return object;
    };

    return ModelConfig;
  })();

  return inference;
})();

export const grpc = $root.grpc = (() => {
  const grpc = {};

  grpc.health = (function() {
    const health = {};

    health.v1 = (function() {
      const v1 = {};

      v1.HealthCheckRequest = (function() {
        const HealthCheckRequest = function (properties) {
          if (properties)
            for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
              if (properties[keys[i]] != null && keys[i] !== "__proto__")
                this[keys[i]] = properties[keys[i]];
        };

        HealthCheckRequest.prototype.service = "";

        HealthCheckRequest.encode = function (message, writer, _depth) {
          if (!writer)
            writer = $Writer.create();
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          if (message.service != null && $Object.hasOwnProperty.call(message, "service") && message.service !== "")
            writer.uint32(/* id 1, wireType 2 =*/10).string(message.service);
          if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
            for (let i = 0; i < message.$unknowns.length; ++i)
              writer.raw(message.$unknowns[i]);
          return writer;
        };

        HealthCheckRequest.decode = function (reader, length, _end, _depth, _target) {
          if (!(reader instanceof $Reader))
            reader = $Reader.create(reader);
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $Reader.recursionLimit)
            throw $Error("max depth exceeded");
          let end, message, value;
          if (length === $undefined)
            end = reader.len;
          else {
            end = reader.pos + length;
            if (end > reader.len)
              throw $RangeError("index out of range");
            length = reader.len;
            reader.len = end;
          }
          message = _target || new $root.grpc.health.v1.HealthCheckRequest();
          while (reader.pos < end) {
            let start = reader.pos;
            let tag = reader.tag();
            if (tag === _end) {
              _end = $undefined;
              break;
            }
            let wireType = tag & 7;
            switch (tag >>>= 3) {
            case 1: {
                if (wireType !== 2)
                  break;
                if ((value = reader.stringVerify()).length)
                  message.service = value;
                else
                  delete message.service;
                continue;
              }
            }
            reader.skipType(wireType, _depth, tag);
            if (!reader.discardUnknown) {
              $util.makeProp(message, "$unknowns", false);
              (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
            }
          }
          if (length !== $undefined) {
            if (reader.pos !== end)
              throw $RangeError("index out of range");
            reader.len = length;
          }
          if (_end !== $undefined)
            throw $Error("missing end group");
          return message;
        };

        HealthCheckRequest.fromObject = function (object, _depth) {
          if (object instanceof $root.grpc.health.v1.HealthCheckRequest)
            return object;
          if (!$util.isObject(object))
            throw $TypeError(".grpc.health.v1.HealthCheckRequest: object expected");
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          let message = new $root.grpc.health.v1.HealthCheckRequest();
          if (object.service != null)
            if (typeof object.service !== "string" || object.service.length)
              message.service = $String(object.service);
          return message;
        };

        return HealthCheckRequest;
      })();

      v1.HealthCheckResponse = (function() {
        const HealthCheckResponse = function (properties) {
          if (properties)
            for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
              if (properties[keys[i]] != null && keys[i] !== "__proto__")
                this[keys[i]] = properties[keys[i]];
        };

        HealthCheckResponse.prototype.status = 0;

        HealthCheckResponse.encode = function (message, writer, _depth) {
          if (!writer)
            writer = $Writer.create();
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          if (message.status != null && $Object.hasOwnProperty.call(message, "status") && message.status !== 0)
            writer.uint32(/* id 1, wireType 0 =*/8).int32(message.status);
          if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
            for (let i = 0; i < message.$unknowns.length; ++i)
              writer.raw(message.$unknowns[i]);
          return writer;
        };

        HealthCheckResponse.decode = function (reader, length, _end, _depth, _target) {
          if (!(reader instanceof $Reader))
            reader = $Reader.create(reader);
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $Reader.recursionLimit)
            throw $Error("max depth exceeded");
          let end, message, value;
          if (length === $undefined)
            end = reader.len;
          else {
            end = reader.pos + length;
            if (end > reader.len)
              throw $RangeError("index out of range");
            length = reader.len;
            reader.len = end;
          }
          message = _target || new $root.grpc.health.v1.HealthCheckResponse();
          while (reader.pos < end) {
            let start = reader.pos;
            let tag = reader.tag();
            if (tag === _end) {
              _end = $undefined;
              break;
            }
            let wireType = tag & 7;
            switch (tag >>>= 3) {
            case 1: {
                if (wireType !== 0)
                  break;
                if (value = reader.int32())
                  message.status = value;
                else
                  delete message.status;
                continue;
              }
            }
            reader.skipType(wireType, _depth, tag);
            if (!reader.discardUnknown) {
              $util.makeProp(message, "$unknowns", false);
              (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
            }
          }
          if (length !== $undefined) {
            if (reader.pos !== end)
              throw $RangeError("index out of range");
            reader.len = length;
          }
          if (_end !== $undefined)
            throw $Error("missing end group");
          return message;
        };

        HealthCheckResponse.fromObject = function (object, _depth) {
          if (object instanceof $root.grpc.health.v1.HealthCheckResponse)
            return object;
          if (!$util.isObject(object))
            throw $TypeError(".grpc.health.v1.HealthCheckResponse: object expected");
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          let message = new $root.grpc.health.v1.HealthCheckResponse();
          if (object.status !== 0 && (typeof object.status !== "string" || $root.grpc.health.v1.HealthCheckResponse.ServingStatus[object.status] !== 0))
            switch (object.status) {
            case "UNKNOWN":
            case 0:
              message.status = 0;
              break;
            case "SERVING":
            case 1:
              message.status = 1;
              break;
            case "NOT_SERVING":
            case 2:
              message.status = 2;
              break;
            case "SERVICE_UNKNOWN":
            case 3:
              message.status = 3;
              break;
            default:
              if (typeof object.status === "number" && (object.status | 0) === object.status)
                message.status = object.status;
            }
          return message;
        };

        HealthCheckResponse.ServingStatus = (function() {
          const valuesById = $Object.create(null), values = $Object.create(valuesById);
          values[valuesById[0] = "UNKNOWN"] = 0;
          values[valuesById[1] = "SERVING"] = 1;
          values[valuesById[2] = "NOT_SERVING"] = 2;
          values[valuesById[3] = "SERVICE_UNKNOWN"] = 3;
          return values;
        })();

        return HealthCheckResponse;
      })();

      return v1;
    })();

    return health;
  })();

  grpc.reflection = (function() {
    const reflection = {};

    reflection.v1 = (function() {
      const v1 = {};

      v1.ServerReflectionRequest = (function() {
        const ServerReflectionRequest = function (properties) {
          if (properties)
            for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
              if (properties[keys[i]] != null && keys[i] !== "__proto__")
                this[keys[i]] = properties[keys[i]];
        };

        ServerReflectionRequest.prototype.host = "";

        ServerReflectionRequest.prototype.fileByFilename = null;

        ServerReflectionRequest.prototype.fileContainingSymbol = null;

        ServerReflectionRequest.prototype.fileContainingExtension = null;

        ServerReflectionRequest.prototype.allExtensionNumbersOfType = null;

        ServerReflectionRequest.prototype.listServices = null;

        // OneOf field names bound to virtual getters and setters
        let $oneOfFields;

        $Object.defineProperty(ServerReflectionRequest.prototype, "messageRequest", {
          get: $util.oneOfGetter($oneOfFields = ["fileByFilename", "fileContainingSymbol", "fileContainingExtension", "allExtensionNumbersOfType", "listServices"]),
          set: $util.oneOfSetter($oneOfFields)
        });

        ServerReflectionRequest.encode = function (message, writer, _depth) {
          if (!writer)
            writer = $Writer.create();
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          if (message.host != null && $Object.hasOwnProperty.call(message, "host") && message.host !== "")
            writer.uint32(/* id 1, wireType 2 =*/10).string(message.host);
          if (message.fileByFilename != null && $Object.hasOwnProperty.call(message, "fileByFilename"))
            writer.uint32(/* id 3, wireType 2 =*/26).string(message.fileByFilename);
          if (message.fileContainingSymbol != null && $Object.hasOwnProperty.call(message, "fileContainingSymbol"))
            writer.uint32(/* id 4, wireType 2 =*/34).string(message.fileContainingSymbol);
          if (message.fileContainingExtension != null && $Object.hasOwnProperty.call(message, "fileContainingExtension"))
            $root.grpc.reflection.v1.ExtensionRequest.encode(message.fileContainingExtension, writer.uint32(/* id 5, wireType 2 =*/42).fork(), _depth + 1).ldelim();
          if (message.allExtensionNumbersOfType != null && $Object.hasOwnProperty.call(message, "allExtensionNumbersOfType"))
            writer.uint32(/* id 6, wireType 2 =*/50).string(message.allExtensionNumbersOfType);
          if (message.listServices != null && $Object.hasOwnProperty.call(message, "listServices"))
            writer.uint32(/* id 7, wireType 2 =*/58).string(message.listServices);
          if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
            for (let i = 0; i < message.$unknowns.length; ++i)
              writer.raw(message.$unknowns[i]);
          return writer;
        };

        ServerReflectionRequest.decode = function (reader, length, _end, _depth, _target) {
          if (!(reader instanceof $Reader))
            reader = $Reader.create(reader);
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $Reader.recursionLimit)
            throw $Error("max depth exceeded");
          let end, message, value;
          if (length === $undefined)
            end = reader.len;
          else {
            end = reader.pos + length;
            if (end > reader.len)
              throw $RangeError("index out of range");
            length = reader.len;
            reader.len = end;
          }
          message = _target || new $root.grpc.reflection.v1.ServerReflectionRequest();
          while (reader.pos < end) {
            let start = reader.pos;
            let tag = reader.tag();
            if (tag === _end) {
              _end = $undefined;
              break;
            }
            let wireType = tag & 7;
            switch (tag >>>= 3) {
            case 1: {
                if (wireType !== 2)
                  break;
                if ((value = reader.stringVerify()).length)
                  message.host = value;
                else
                  delete message.host;
                continue;
              }
            case 3: {
                if (wireType !== 2)
                  break;
                message.fileByFilename = reader.stringVerify();
                message.messageRequest = "fileByFilename";
                continue;
              }
            case 4: {
                if (wireType !== 2)
                  break;
                message.fileContainingSymbol = reader.stringVerify();
                message.messageRequest = "fileContainingSymbol";
                continue;
              }
            case 5: {
                if (wireType !== 2)
                  break;
                message.fileContainingExtension = $root.grpc.reflection.v1.ExtensionRequest.decode(reader, reader.size(), $undefined, _depth + 1, message.fileContainingExtension);
                message.messageRequest = "fileContainingExtension";
                continue;
              }
            case 6: {
                if (wireType !== 2)
                  break;
                message.allExtensionNumbersOfType = reader.stringVerify();
                message.messageRequest = "allExtensionNumbersOfType";
                continue;
              }
            case 7: {
                if (wireType !== 2)
                  break;
                message.listServices = reader.stringVerify();
                message.messageRequest = "listServices";
                continue;
              }
            }
            reader.skipType(wireType, _depth, tag);
            if (!reader.discardUnknown) {
              $util.makeProp(message, "$unknowns", false);
              (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
            }
          }
          if (length !== $undefined) {
            if (reader.pos !== end)
              throw $RangeError("index out of range");
            reader.len = length;
          }
          if (_end !== $undefined)
            throw $Error("missing end group");
          return message;
        };

        ServerReflectionRequest.fromObject = function (object, _depth) {
          if (object instanceof $root.grpc.reflection.v1.ServerReflectionRequest)
            return object;
          if (!$util.isObject(object))
            throw $TypeError(".grpc.reflection.v1.ServerReflectionRequest: object expected");
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          let message = new $root.grpc.reflection.v1.ServerReflectionRequest();
          if (object.host != null)
            if (typeof object.host !== "string" || object.host.length)
              message.host = $String(object.host);
          if (object.fileByFilename != null)
            message.fileByFilename = $String(object.fileByFilename);
          if (object.fileContainingSymbol != null)
            message.fileContainingSymbol = $String(object.fileContainingSymbol);
          if (object.fileContainingExtension != null) {
            if (!$util.isObject(object.fileContainingExtension))
              throw $TypeError(".grpc.reflection.v1.ServerReflectionRequest.fileContainingExtension: object expected");
            message.fileContainingExtension = $root.grpc.reflection.v1.ExtensionRequest.fromObject(object.fileContainingExtension, _depth + 1);
          }
          if (object.allExtensionNumbersOfType != null)
            message.allExtensionNumbersOfType = $String(object.allExtensionNumbersOfType);
          if (object.listServices != null)
            message.listServices = $String(object.listServices);
          return message;
        };

        return ServerReflectionRequest;
      })();

      v1.ExtensionRequest = (function() {
        const ExtensionRequest = function (properties) {
          if (properties)
            for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
              if (properties[keys[i]] != null && keys[i] !== "__proto__")
                this[keys[i]] = properties[keys[i]];
        };

        ExtensionRequest.prototype.containingType = "";

        ExtensionRequest.prototype.extensionNumber = 0;

        ExtensionRequest.encode = function (message, writer, _depth) {
          if (!writer)
            writer = $Writer.create();
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          if (message.containingType != null && $Object.hasOwnProperty.call(message, "containingType") && message.containingType !== "")
            writer.uint32(/* id 1, wireType 2 =*/10).string(message.containingType);
          if (message.extensionNumber != null && $Object.hasOwnProperty.call(message, "extensionNumber") && message.extensionNumber !== 0)
            writer.uint32(/* id 2, wireType 0 =*/16).int32(message.extensionNumber);
          if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
            for (let i = 0; i < message.$unknowns.length; ++i)
              writer.raw(message.$unknowns[i]);
          return writer;
        };

        ExtensionRequest.decode = function (reader, length, _end, _depth, _target) {
          if (!(reader instanceof $Reader))
            reader = $Reader.create(reader);
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $Reader.recursionLimit)
            throw $Error("max depth exceeded");
          let end, message, value;
          if (length === $undefined)
            end = reader.len;
          else {
            end = reader.pos + length;
            if (end > reader.len)
              throw $RangeError("index out of range");
            length = reader.len;
            reader.len = end;
          }
          message = _target || new $root.grpc.reflection.v1.ExtensionRequest();
          while (reader.pos < end) {
            let start = reader.pos;
            let tag = reader.tag();
            if (tag === _end) {
              _end = $undefined;
              break;
            }
            let wireType = tag & 7;
            switch (tag >>>= 3) {
            case 1: {
                if (wireType !== 2)
                  break;
                if ((value = reader.stringVerify()).length)
                  message.containingType = value;
                else
                  delete message.containingType;
                continue;
              }
            case 2: {
                if (wireType !== 0)
                  break;
                if (value = reader.int32())
                  message.extensionNumber = value;
                else
                  delete message.extensionNumber;
                continue;
              }
            }
            reader.skipType(wireType, _depth, tag);
            if (!reader.discardUnknown) {
              $util.makeProp(message, "$unknowns", false);
              (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
            }
          }
          if (length !== $undefined) {
            if (reader.pos !== end)
              throw $RangeError("index out of range");
            reader.len = length;
          }
          if (_end !== $undefined)
            throw $Error("missing end group");
          return message;
        };

        ExtensionRequest.fromObject = function (object, _depth) {
          if (object instanceof $root.grpc.reflection.v1.ExtensionRequest)
            return object;
          if (!$util.isObject(object))
            throw $TypeError(".grpc.reflection.v1.ExtensionRequest: object expected");
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          let message = new $root.grpc.reflection.v1.ExtensionRequest();
          if (object.containingType != null)
            if (typeof object.containingType !== "string" || object.containingType.length)
              message.containingType = $String(object.containingType);
          if (object.extensionNumber != null)
            if ($Number(object.extensionNumber) !== 0)
              message.extensionNumber = object.extensionNumber | 0;
          return message;
        };

        return ExtensionRequest;
      })();

      v1.ServerReflectionResponse = (function() {
        const ServerReflectionResponse = function (properties) {
          if (properties)
            for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
              if (properties[keys[i]] != null && keys[i] !== "__proto__")
                this[keys[i]] = properties[keys[i]];
        };

        ServerReflectionResponse.prototype.validHost = "";

        ServerReflectionResponse.prototype.originalRequest = null;

        ServerReflectionResponse.prototype.fileDescriptorResponse = null;

        ServerReflectionResponse.prototype.allExtensionNumbersResponse = null;

        ServerReflectionResponse.prototype.listServicesResponse = null;

        ServerReflectionResponse.prototype.errorResponse = null;

        // OneOf field names bound to virtual getters and setters
        let $oneOfFields;

        $Object.defineProperty(ServerReflectionResponse.prototype, "messageResponse", {
          get: $util.oneOfGetter($oneOfFields = ["fileDescriptorResponse", "allExtensionNumbersResponse", "listServicesResponse", "errorResponse"]),
          set: $util.oneOfSetter($oneOfFields)
        });

        ServerReflectionResponse.encode = function (message, writer, _depth) {
          if (!writer)
            writer = $Writer.create();
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          if (message.validHost != null && $Object.hasOwnProperty.call(message, "validHost") && message.validHost !== "")
            writer.uint32(/* id 1, wireType 2 =*/10).string(message.validHost);
          if (message.originalRequest != null && $Object.hasOwnProperty.call(message, "originalRequest"))
            $root.grpc.reflection.v1.ServerReflectionRequest.encode(message.originalRequest, writer.uint32(/* id 2, wireType 2 =*/18).fork(), _depth + 1).ldelim();
          if (message.fileDescriptorResponse != null && $Object.hasOwnProperty.call(message, "fileDescriptorResponse"))
            $root.grpc.reflection.v1.FileDescriptorResponse.encode(message.fileDescriptorResponse, writer.uint32(/* id 4, wireType 2 =*/34).fork(), _depth + 1).ldelim();
          if (message.allExtensionNumbersResponse != null && $Object.hasOwnProperty.call(message, "allExtensionNumbersResponse"))
            $root.grpc.reflection.v1.ExtensionNumberResponse.encode(message.allExtensionNumbersResponse, writer.uint32(/* id 5, wireType 2 =*/42).fork(), _depth + 1).ldelim();
          if (message.listServicesResponse != null && $Object.hasOwnProperty.call(message, "listServicesResponse"))
            $root.grpc.reflection.v1.ListServiceResponse.encode(message.listServicesResponse, writer.uint32(/* id 6, wireType 2 =*/50).fork(), _depth + 1).ldelim();
          if (message.errorResponse != null && $Object.hasOwnProperty.call(message, "errorResponse"))
            $root.grpc.reflection.v1.ErrorResponse.encode(message.errorResponse, writer.uint32(/* id 7, wireType 2 =*/58).fork(), _depth + 1).ldelim();
          if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
            for (let i = 0; i < message.$unknowns.length; ++i)
              writer.raw(message.$unknowns[i]);
          return writer;
        };

        ServerReflectionResponse.decode = function (reader, length, _end, _depth, _target) {
          if (!(reader instanceof $Reader))
            reader = $Reader.create(reader);
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $Reader.recursionLimit)
            throw $Error("max depth exceeded");
          let end, message, value;
          if (length === $undefined)
            end = reader.len;
          else {
            end = reader.pos + length;
            if (end > reader.len)
              throw $RangeError("index out of range");
            length = reader.len;
            reader.len = end;
          }
          message = _target || new $root.grpc.reflection.v1.ServerReflectionResponse();
          while (reader.pos < end) {
            let start = reader.pos;
            let tag = reader.tag();
            if (tag === _end) {
              _end = $undefined;
              break;
            }
            let wireType = tag & 7;
            switch (tag >>>= 3) {
            case 1: {
                if (wireType !== 2)
                  break;
                if ((value = reader.stringVerify()).length)
                  message.validHost = value;
                else
                  delete message.validHost;
                continue;
              }
            case 2: {
                if (wireType !== 2)
                  break;
                message.originalRequest = $root.grpc.reflection.v1.ServerReflectionRequest.decode(reader, reader.size(), $undefined, _depth + 1, message.originalRequest);
                continue;
              }
            case 4: {
                if (wireType !== 2)
                  break;
                message.fileDescriptorResponse = $root.grpc.reflection.v1.FileDescriptorResponse.decode(reader, reader.size(), $undefined, _depth + 1, message.fileDescriptorResponse);
                message.messageResponse = "fileDescriptorResponse";
                continue;
              }
            case 5: {
                if (wireType !== 2)
                  break;
                message.allExtensionNumbersResponse = $root.grpc.reflection.v1.ExtensionNumberResponse.decode(reader, reader.size(), $undefined, _depth + 1, message.allExtensionNumbersResponse);
                message.messageResponse = "allExtensionNumbersResponse";
                continue;
              }
            case 6: {
                if (wireType !== 2)
                  break;
                message.listServicesResponse = $root.grpc.reflection.v1.ListServiceResponse.decode(reader, reader.size(), $undefined, _depth + 1, message.listServicesResponse);
                message.messageResponse = "listServicesResponse";
                continue;
              }
            case 7: {
                if (wireType !== 2)
                  break;
                message.errorResponse = $root.grpc.reflection.v1.ErrorResponse.decode(reader, reader.size(), $undefined, _depth + 1, message.errorResponse);
                message.messageResponse = "errorResponse";
                continue;
              }
            }
            reader.skipType(wireType, _depth, tag);
            if (!reader.discardUnknown) {
              $util.makeProp(message, "$unknowns", false);
              (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
            }
          }
          if (length !== $undefined) {
            if (reader.pos !== end)
              throw $RangeError("index out of range");
            reader.len = length;
          }
          if (_end !== $undefined)
            throw $Error("missing end group");
          return message;
        };

        ServerReflectionResponse.fromObject = function (object, _depth) {
          if (object instanceof $root.grpc.reflection.v1.ServerReflectionResponse)
            return object;
          if (!$util.isObject(object))
            throw $TypeError(".grpc.reflection.v1.ServerReflectionResponse: object expected");
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          let message = new $root.grpc.reflection.v1.ServerReflectionResponse();
          if (object.validHost != null)
            if (typeof object.validHost !== "string" || object.validHost.length)
              message.validHost = $String(object.validHost);
          if (object.originalRequest != null) {
            if (!$util.isObject(object.originalRequest))
              throw $TypeError(".grpc.reflection.v1.ServerReflectionResponse.originalRequest: object expected");
            message.originalRequest = $root.grpc.reflection.v1.ServerReflectionRequest.fromObject(object.originalRequest, _depth + 1);
          }
          if (object.fileDescriptorResponse != null) {
            if (!$util.isObject(object.fileDescriptorResponse))
              throw $TypeError(".grpc.reflection.v1.ServerReflectionResponse.fileDescriptorResponse: object expected");
            message.fileDescriptorResponse = $root.grpc.reflection.v1.FileDescriptorResponse.fromObject(object.fileDescriptorResponse, _depth + 1);
          }
          if (object.allExtensionNumbersResponse != null) {
            if (!$util.isObject(object.allExtensionNumbersResponse))
              throw $TypeError(".grpc.reflection.v1.ServerReflectionResponse.allExtensionNumbersResponse: object expected");
            message.allExtensionNumbersResponse = $root.grpc.reflection.v1.ExtensionNumberResponse.fromObject(object.allExtensionNumbersResponse, _depth + 1);
          }
          if (object.listServicesResponse != null) {
            if (!$util.isObject(object.listServicesResponse))
              throw $TypeError(".grpc.reflection.v1.ServerReflectionResponse.listServicesResponse: object expected");
            message.listServicesResponse = $root.grpc.reflection.v1.ListServiceResponse.fromObject(object.listServicesResponse, _depth + 1);
          }
          if (object.errorResponse != null) {
            if (!$util.isObject(object.errorResponse))
              throw $TypeError(".grpc.reflection.v1.ServerReflectionResponse.errorResponse: object expected");
            message.errorResponse = $root.grpc.reflection.v1.ErrorResponse.fromObject(object.errorResponse, _depth + 1);
          }
          return message;
        };

        return ServerReflectionResponse;
      })();

      v1.FileDescriptorResponse = (function() {
        const FileDescriptorResponse = function (properties) {
          this.fileDescriptorProto = [];
          if (properties)
            for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
              if (properties[keys[i]] != null && keys[i] !== "__proto__")
                this[keys[i]] = properties[keys[i]];
        };

        FileDescriptorResponse.prototype.fileDescriptorProto = $util.emptyArray;

        FileDescriptorResponse.encode = function (message, writer, _depth) {
          if (!writer)
            writer = $Writer.create();
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          if (message.fileDescriptorProto != null && message.fileDescriptorProto.length)
            for (let i = 0; i < message.fileDescriptorProto.length; ++i)
              writer.uint32(/* id 1, wireType 2 =*/10).bytes(message.fileDescriptorProto[i]);
          if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
            for (let i = 0; i < message.$unknowns.length; ++i)
              writer.raw(message.$unknowns[i]);
          return writer;
        };

        FileDescriptorResponse.decode = function (reader, length, _end, _depth, _target) {
          if (!(reader instanceof $Reader))
            reader = $Reader.create(reader);
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $Reader.recursionLimit)
            throw $Error("max depth exceeded");
          let end, message;
          if (length === $undefined)
            end = reader.len;
          else {
            end = reader.pos + length;
            if (end > reader.len)
              throw $RangeError("index out of range");
            length = reader.len;
            reader.len = end;
          }
          message = _target || new $root.grpc.reflection.v1.FileDescriptorResponse();
          while (reader.pos < end) {
            let start = reader.pos;
            let tag = reader.tag();
            if (tag === _end) {
              _end = $undefined;
              break;
            }
            let wireType = tag & 7;
            switch (tag >>>= 3) {
            case 1: {
                if (wireType !== 2)
                  break;
                if (!(message.fileDescriptorProto && message.fileDescriptorProto.length))
                  message.fileDescriptorProto = [];
                message.fileDescriptorProto.push(reader.bytes());
                continue;
              }
            }
            reader.skipType(wireType, _depth, tag);
            if (!reader.discardUnknown) {
              $util.makeProp(message, "$unknowns", false);
              (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
            }
          }
          if (length !== $undefined) {
            if (reader.pos !== end)
              throw $RangeError("index out of range");
            reader.len = length;
          }
          if (_end !== $undefined)
            throw $Error("missing end group");
          return message;
        };

        FileDescriptorResponse.fromObject = function (object, _depth) {
          if (object instanceof $root.grpc.reflection.v1.FileDescriptorResponse)
            return object;
          if (!$util.isObject(object))
            throw $TypeError(".grpc.reflection.v1.FileDescriptorResponse: object expected");
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          let message = new $root.grpc.reflection.v1.FileDescriptorResponse();
          if (object.fileDescriptorProto) {
            if (!$Array.isArray(object.fileDescriptorProto))
              throw $TypeError(".grpc.reflection.v1.FileDescriptorResponse.fileDescriptorProto: array expected");
            message.fileDescriptorProto = $Array(object.fileDescriptorProto.length);
            for (let i = 0; i < object.fileDescriptorProto.length; ++i)
              if (typeof object.fileDescriptorProto[i] === "string")
                $util.base64.decode(object.fileDescriptorProto[i], message.fileDescriptorProto[i] = $util.newBuffer($util.base64.length(object.fileDescriptorProto[i])), 0);
              else if (object.fileDescriptorProto[i].length >= 0)
                message.fileDescriptorProto[i] = object.fileDescriptorProto[i];
          }
          return message;
        };

        return FileDescriptorResponse;
      })();

      v1.ExtensionNumberResponse = (function() {
        const ExtensionNumberResponse = function (properties) {
          this.extensionNumber = [];
          if (properties)
            for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
              if (properties[keys[i]] != null && keys[i] !== "__proto__")
                this[keys[i]] = properties[keys[i]];
        };

        ExtensionNumberResponse.prototype.baseTypeName = "";

        ExtensionNumberResponse.prototype.extensionNumber = $util.emptyArray;

        ExtensionNumberResponse.encode = function (message, writer, _depth) {
          if (!writer)
            writer = $Writer.create();
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          if (message.baseTypeName != null && $Object.hasOwnProperty.call(message, "baseTypeName") && message.baseTypeName !== "")
            writer.uint32(/* id 1, wireType 2 =*/10).string(message.baseTypeName);
          if (message.extensionNumber != null && message.extensionNumber.length)
            writer.uint32(/* id 2, wireType 2 =*/18).int32s(message.extensionNumber);
          if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
            for (let i = 0; i < message.$unknowns.length; ++i)
              writer.raw(message.$unknowns[i]);
          return writer;
        };

        ExtensionNumberResponse.decode = function (reader, length, _end, _depth, _target) {
          if (!(reader instanceof $Reader))
            reader = $Reader.create(reader);
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $Reader.recursionLimit)
            throw $Error("max depth exceeded");
          let end, message, value;
          if (length === $undefined)
            end = reader.len;
          else {
            end = reader.pos + length;
            if (end > reader.len)
              throw $RangeError("index out of range");
            length = reader.len;
            reader.len = end;
          }
          message = _target || new $root.grpc.reflection.v1.ExtensionNumberResponse();
          while (reader.pos < end) {
            let start = reader.pos;
            let tag = reader.tag();
            if (tag === _end) {
              _end = $undefined;
              break;
            }
            let wireType = tag & 7;
            switch (tag >>>= 3) {
            case 1: {
                if (wireType !== 2)
                  break;
                if ((value = reader.stringVerify()).length)
                  message.baseTypeName = value;
                else
                  delete message.baseTypeName;
                continue;
              }
            case 2: {
                if (wireType === 2) {
                  if (!(message.extensionNumber && message.extensionNumber.length))
                    message.extensionNumber = [];
                  reader.int32s(message.extensionNumber);
                  continue;
                }
                if (wireType !== 0)
                  break;
                if (!(message.extensionNumber && message.extensionNumber.length))
                  message.extensionNumber = [];
                message.extensionNumber.push(reader.int32());
                continue;
              }
            }
            reader.skipType(wireType, _depth, tag);
            if (!reader.discardUnknown) {
              $util.makeProp(message, "$unknowns", false);
              (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
            }
          }
          if (length !== $undefined) {
            if (reader.pos !== end)
              throw $RangeError("index out of range");
            reader.len = length;
          }
          if (_end !== $undefined)
            throw $Error("missing end group");
          return message;
        };

        ExtensionNumberResponse.fromObject = function (object, _depth) {
          if (object instanceof $root.grpc.reflection.v1.ExtensionNumberResponse)
            return object;
          if (!$util.isObject(object))
            throw $TypeError(".grpc.reflection.v1.ExtensionNumberResponse: object expected");
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          let message = new $root.grpc.reflection.v1.ExtensionNumberResponse();
          if (object.baseTypeName != null)
            if (typeof object.baseTypeName !== "string" || object.baseTypeName.length)
              message.baseTypeName = $String(object.baseTypeName);
          if (object.extensionNumber) {
            if (!$Array.isArray(object.extensionNumber))
              throw $TypeError(".grpc.reflection.v1.ExtensionNumberResponse.extensionNumber: array expected");
            message.extensionNumber = $Array(object.extensionNumber.length);
            for (let i = 0; i < object.extensionNumber.length; ++i)
              message.extensionNumber[i] = object.extensionNumber[i] | 0;
          }
          return message;
        };

        return ExtensionNumberResponse;
      })();

      v1.ListServiceResponse = (function() {
        const ListServiceResponse = function (properties) {
          this.service = [];
          if (properties)
            for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
              if (properties[keys[i]] != null && keys[i] !== "__proto__")
                this[keys[i]] = properties[keys[i]];
        };

        ListServiceResponse.prototype.service = $util.emptyArray;

        ListServiceResponse.encode = function (message, writer, _depth) {
          if (!writer)
            writer = $Writer.create();
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          if (message.service != null && message.service.length)
            for (let i = 0; i < message.service.length; ++i)
              $root.grpc.reflection.v1.ServiceResponse.encode(message.service[i], writer.uint32(/* id 1, wireType 2 =*/10).fork(), _depth + 1).ldelim();
          if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
            for (let i = 0; i < message.$unknowns.length; ++i)
              writer.raw(message.$unknowns[i]);
          return writer;
        };

        ListServiceResponse.decode = function (reader, length, _end, _depth, _target) {
          if (!(reader instanceof $Reader))
            reader = $Reader.create(reader);
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $Reader.recursionLimit)
            throw $Error("max depth exceeded");
          let end, message;
          if (length === $undefined)
            end = reader.len;
          else {
            end = reader.pos + length;
            if (end > reader.len)
              throw $RangeError("index out of range");
            length = reader.len;
            reader.len = end;
          }
          message = _target || new $root.grpc.reflection.v1.ListServiceResponse();
          while (reader.pos < end) {
            let start = reader.pos;
            let tag = reader.tag();
            if (tag === _end) {
              _end = $undefined;
              break;
            }
            let wireType = tag & 7;
            switch (tag >>>= 3) {
            case 1: {
                if (wireType !== 2)
                  break;
                if (!(message.service && message.service.length))
                  message.service = [];
                message.service.push($root.grpc.reflection.v1.ServiceResponse.decode(reader, reader.size(), $undefined, _depth + 1));
                continue;
              }
            }
            reader.skipType(wireType, _depth, tag);
            if (!reader.discardUnknown) {
              $util.makeProp(message, "$unknowns", false);
              (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
            }
          }
          if (length !== $undefined) {
            if (reader.pos !== end)
              throw $RangeError("index out of range");
            reader.len = length;
          }
          if (_end !== $undefined)
            throw $Error("missing end group");
          return message;
        };

        ListServiceResponse.fromObject = function (object, _depth) {
          if (object instanceof $root.grpc.reflection.v1.ListServiceResponse)
            return object;
          if (!$util.isObject(object))
            throw $TypeError(".grpc.reflection.v1.ListServiceResponse: object expected");
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          let message = new $root.grpc.reflection.v1.ListServiceResponse();
          if (object.service) {
            if (!$Array.isArray(object.service))
              throw $TypeError(".grpc.reflection.v1.ListServiceResponse.service: array expected");
            message.service = $Array(object.service.length);
            for (let i = 0; i < object.service.length; ++i) {
              if (!$util.isObject(object.service[i]))
                throw $TypeError(".grpc.reflection.v1.ListServiceResponse.service: object expected");
              message.service[i] = $root.grpc.reflection.v1.ServiceResponse.fromObject(object.service[i], _depth + 1);
            }
          }
          return message;
        };

        return ListServiceResponse;
      })();

      v1.ServiceResponse = (function() {
        const ServiceResponse = function (properties) {
          if (properties)
            for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
              if (properties[keys[i]] != null && keys[i] !== "__proto__")
                this[keys[i]] = properties[keys[i]];
        };

        ServiceResponse.prototype.name = "";

        ServiceResponse.encode = function (message, writer, _depth) {
          if (!writer)
            writer = $Writer.create();
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
            writer.uint32(/* id 1, wireType 2 =*/10).string(message.name);
          if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
            for (let i = 0; i < message.$unknowns.length; ++i)
              writer.raw(message.$unknowns[i]);
          return writer;
        };

        ServiceResponse.decode = function (reader, length, _end, _depth, _target) {
          if (!(reader instanceof $Reader))
            reader = $Reader.create(reader);
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $Reader.recursionLimit)
            throw $Error("max depth exceeded");
          let end, message, value;
          if (length === $undefined)
            end = reader.len;
          else {
            end = reader.pos + length;
            if (end > reader.len)
              throw $RangeError("index out of range");
            length = reader.len;
            reader.len = end;
          }
          message = _target || new $root.grpc.reflection.v1.ServiceResponse();
          while (reader.pos < end) {
            let start = reader.pos;
            let tag = reader.tag();
            if (tag === _end) {
              _end = $undefined;
              break;
            }
            let wireType = tag & 7;
            switch (tag >>>= 3) {
            case 1: {
                if (wireType !== 2)
                  break;
                if ((value = reader.stringVerify()).length)
                  message.name = value;
                else
                  delete message.name;
                continue;
              }
            }
            reader.skipType(wireType, _depth, tag);
            if (!reader.discardUnknown) {
              $util.makeProp(message, "$unknowns", false);
              (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
            }
          }
          if (length !== $undefined) {
            if (reader.pos !== end)
              throw $RangeError("index out of range");
            reader.len = length;
          }
          if (_end !== $undefined)
            throw $Error("missing end group");
          return message;
        };

        ServiceResponse.fromObject = function (object, _depth) {
          if (object instanceof $root.grpc.reflection.v1.ServiceResponse)
            return object;
          if (!$util.isObject(object))
            throw $TypeError(".grpc.reflection.v1.ServiceResponse: object expected");
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          let message = new $root.grpc.reflection.v1.ServiceResponse();
          if (object.name != null)
            if (typeof object.name !== "string" || object.name.length)
              message.name = $String(object.name);
          return message;
        };

        return ServiceResponse;
      })();

      v1.ErrorResponse = (function() {
        const ErrorResponse = function (properties) {
          if (properties)
            for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
              if (properties[keys[i]] != null && keys[i] !== "__proto__")
                this[keys[i]] = properties[keys[i]];
        };

        ErrorResponse.prototype.errorCode = 0;

        ErrorResponse.prototype.errorMessage = "";

        ErrorResponse.encode = function (message, writer, _depth) {
          if (!writer)
            writer = $Writer.create();
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          if (message.errorCode != null && $Object.hasOwnProperty.call(message, "errorCode") && message.errorCode !== 0)
            writer.uint32(/* id 1, wireType 0 =*/8).int32(message.errorCode);
          if (message.errorMessage != null && $Object.hasOwnProperty.call(message, "errorMessage") && message.errorMessage !== "")
            writer.uint32(/* id 2, wireType 2 =*/18).string(message.errorMessage);
          if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
            for (let i = 0; i < message.$unknowns.length; ++i)
              writer.raw(message.$unknowns[i]);
          return writer;
        };

        ErrorResponse.decode = function (reader, length, _end, _depth, _target) {
          if (!(reader instanceof $Reader))
            reader = $Reader.create(reader);
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $Reader.recursionLimit)
            throw $Error("max depth exceeded");
          let end, message, value;
          if (length === $undefined)
            end = reader.len;
          else {
            end = reader.pos + length;
            if (end > reader.len)
              throw $RangeError("index out of range");
            length = reader.len;
            reader.len = end;
          }
          message = _target || new $root.grpc.reflection.v1.ErrorResponse();
          while (reader.pos < end) {
            let start = reader.pos;
            let tag = reader.tag();
            if (tag === _end) {
              _end = $undefined;
              break;
            }
            let wireType = tag & 7;
            switch (tag >>>= 3) {
            case 1: {
                if (wireType !== 0)
                  break;
                if (value = reader.int32())
                  message.errorCode = value;
                else
                  delete message.errorCode;
                continue;
              }
            case 2: {
                if (wireType !== 2)
                  break;
                if ((value = reader.stringVerify()).length)
                  message.errorMessage = value;
                else
                  delete message.errorMessage;
                continue;
              }
            }
            reader.skipType(wireType, _depth, tag);
            if (!reader.discardUnknown) {
              $util.makeProp(message, "$unknowns", false);
              (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
            }
          }
          if (length !== $undefined) {
            if (reader.pos !== end)
              throw $RangeError("index out of range");
            reader.len = length;
          }
          if (_end !== $undefined)
            throw $Error("missing end group");
          return message;
        };

        ErrorResponse.fromObject = function (object, _depth) {
          if (object instanceof $root.grpc.reflection.v1.ErrorResponse)
            return object;
          if (!$util.isObject(object))
            throw $TypeError(".grpc.reflection.v1.ErrorResponse: object expected");
          if (_depth === $undefined)
            _depth = 0;
          if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
          let message = new $root.grpc.reflection.v1.ErrorResponse();
          if (object.errorCode != null)
            if ($Number(object.errorCode) !== 0)
              message.errorCode = object.errorCode | 0;
          if (object.errorMessage != null)
            if (typeof object.errorMessage !== "string" || object.errorMessage.length)
              message.errorMessage = $String(object.errorMessage);
          return message;
        };

        return ErrorResponse;
      })();

      return v1;
    })();

    return reflection;
  })();

  return grpc;
})();

export {
 $root as default
};
