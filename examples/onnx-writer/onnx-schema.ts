import { parse } from "protobufjs";

/**
 * The part of the public ONNX format that this writer needs. Names and field numbers are those of the ONNX IR
 * (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto); fields that are left out here are optional there.
 */
const source = `
syntax = "proto2";
package onnx;

message ModelProto {
  optional int64 ir_version = 1;
  optional string producer_name = 2;
  optional GraphProto graph = 7;
  repeated OperatorSetIdProto opset_import = 8;
}

message OperatorSetIdProto {
  optional string domain = 1;
  optional int64 version = 2;
}

message GraphProto {
  repeated NodeProto node = 1;
  optional string name = 2;
  repeated TensorProto initializer = 5;
  repeated ValueInfoProto input = 11;
  repeated ValueInfoProto output = 12;
}

message NodeProto {
  repeated string input = 1;
  repeated string output = 2;
  optional string name = 3;
  optional string op_type = 4;
  repeated AttributeProto attribute = 5;
  optional string domain = 7;
}

message AttributeProto {
  enum AttributeType {
    UNDEFINED = 0;
    FLOAT = 1;
    INT = 2;
    STRING = 3;
    TENSOR = 4;
    GRAPH = 5;
    FLOATS = 6;
    INTS = 7;
    STRINGS = 8;
  }
  optional string name = 1;
  optional float f = 2;
  optional int64 i = 3;
  optional bytes s = 4;
  optional TensorProto t = 5;
  optional GraphProto g = 6;
  repeated float floats = 7;
  repeated int64 ints = 8;
  repeated bytes strings = 9;
  optional AttributeType type = 20;
}

message ValueInfoProto {
  optional string name = 1;
  optional TypeProto type = 2;
}

message TypeProto {
  message Tensor {
    optional int32 elem_type = 1;
    optional TensorShapeProto shape = 2;
  }
  optional Tensor tensor_type = 1;
}

message TensorShapeProto {
  message Dimension {
    oneof value {
      int64 dim_value = 1;
      string dim_param = 2;
    }
  }
  repeated Dimension dim = 1;
}

message TensorProto {
  repeated int64 dims = 1;
  optional int32 data_type = 2;
  repeated bytes string_data = 6;
  optional string name = 8;
  optional bytes raw_data = 9;
  repeated StringStringEntryProto external_data = 13;
  optional DataLocation data_location = 14;
  enum DataLocation {
    DEFAULT = 0;
    EXTERNAL = 1;
  }
}

message StringStringEntryProto {
  optional string key = 1;
  optional string value = 2;
}
`;

/** Codec of `onnx.ModelProto`. Field names are in camelCase: `ir_version` is `irVersion`. */
export const modelProto = parse(source).root.lookupType("onnx.ModelProto");
